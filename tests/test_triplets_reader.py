import bz2
import gzip
import lzma
import warnings

import numpy as np
import pandas as pd
import pytest

import nearer
from nearer.errors import AnswersWarning, DroppedRows, InvalidInput

ROWS = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


@pytest.fixture
def write(tmp_path):
    def put(text, name="answers.csv"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8", newline="")
        return file

    return put


@pytest.mark.parametrize(
    "text",
    [
        "head,winner,loser\n0,1,2\n2,0,1\n1,2,0\n",
        "head, winner, loser\r\n0, 1, 2\r\n2, 0, 1\r\n1, 2, 0\r\n",
        "\ufeffhead;winner;loser\n0;1;2\n2;0;1\n1;2;0\n",
        "loser\thead\twinner\n2\t0\t1\n1\t2\t0\n0\t1\t2\n",
        "0,1,2\n2,0,1\n1,2,0\n",
        "0 1  2\n 2 0 1\n\n1 2 0 \n",
        "# made by numpy.savetxt\n# head,winner,loser\n0,1,2\n2,0,1\n1,2,0\n",
        "0.0,1.0,2.0\n2.0,0.0,1.0\n1.0,2.0,0.0\n",
        "0.000000000000000000e+00 1e+00 2e+00\n2e+00 0e+00 1e+00\n1e+00 2e+00 0e+00\n",
        "i,j,k\n0,1,2\n2,0,1\n1,2,0\n",
        "head,b,c\n0,1,2\n2,0,1\n1,2,0\n",
        "0,1,2,<\n2,1,0,>\n1,2,0,<\n",
        "a,b,c,cmp\n0,1,2,<\n2,1,0,>\n1,2,0,<\n",
        "head,a,b,answer\n0,1,2,true\n2,1,0,False\n1,2,0,TRUE\n",
        "head,left,right,response\n0,1,2,left\n2,1,0,right\n1,2,0,left\n",
        "0,1,2,1\n2,1,0,-1\n1,2,0,1\n",
        "0,1,2,1\n2,1,0,0\n1,2,0,1\n",
        "head,left,right,winner\n0,1,2,1\n2,1,0,0\n1,0,2,2\n",
    ],
)
def test_all_forms_of_the_same_answers(write, text):
    answers = nearer.read_triplets(write(text))
    assert answers.triplets.tolist() == ROWS
    assert answers.labels == ("0", "1", "2")
    assert answers.weights is None
    assert answers.people is None
    assert answers.report.rows == answers.report.triplets == 3
    assert np.asarray(answers).tolist() == ROWS


def test_salmons_long_export(write):
    answers = nearer.read_triplets(
        write(
            "head,left,right,winner,loser,sampler,puid,response_time,head_html,winner_html,"
            "loser_html,head_filename,winner_filename,loser_filename\n"
            "0,2,1,1,2,random,x7,1.25,\"<img src='/a.png' width='1'>\",<b>b</b>,c,a.png,b.png,"
            "c.png\n"
            "2,0,1,0,1,ARR,y9,0.5,c,a,b,c.png,a.png,b.png\n"
        )
    )
    assert answers.triplets.tolist() == [[0, 1, 2], [2, 0, 1]]
    assert answers.labels == ("a.png", "b.png", "c.png")
    assert answers.people.tolist() == ["x7", "y9"]
    assert answers.seconds.tolist() == [1.25, 0.5]
    assert "response_time is in seconds, by its median of 0.875" in str(answers.report)
    assert "head_filename" not in answers.report.unread_columns


def test_triplettools_long_and_short(write):
    long = nearer.read_triplets(
        write(
            "head,winner,loser,worker_id,rt,Center,Left,Right,Answer,sampleAlg,sampleSet\n"
            "0,2,1,w1,812,ape,bee,cat,cat,random,train\n"
            "1,0,2,w2,644,bee,ape,cat,ape,check,NA\n"
        )
    )
    short = nearer.read_triplets(
        write("Center,Left,Right,Answer\nape,bee,cat,cat\nbee,ape,cat,ape\n")
    )
    old = nearer.read_triplets(
        write("Target,primary,alternate,Participant.ID\nape,cat,bee,w1\nbee,ape,cat,w2\n")
    )
    assert long.labels == short.labels == old.labels == ("ape", "bee", "cat")
    for answers in (long, short, old):
        assert answers.triplets.tolist() == [[0, 2, 1], [1, 0, 2]]
    assert long.people.tolist() == old.people.tolist() == ["w1", "w2"]


def test_counts_are_weights_and_zero_is_undecided(write):
    with pytest.warns(DroppedRows, match="undecided: 1 of 3 answers"):
        answers = nearer.read_triplets(write("0,1,2,3\n2,1,0,-2\n1,2,0,0\n"))
    assert answers.triplets.tolist() == ROWS[:2]
    assert answers.weights.tolist() == [3, 2]
    assert answers.report.undecided == (3,)


def test_weights_of_a_column_and_of_counts_multiply(write):
    answers = nearer.read_triplets(write("a,b,c,y,weight\n0,1,2,3,0.5\n2,1,0,-1,4\n"))
    assert answers.weights.tolist() == [1.5, 4]


def test_the_authors_undecided_marks(write):
    with pytest.warns(DroppedRows):
        answers = nearer.read_triplets(write("0,1,2,<\n0,1,3,=\n0,2,3,nab\n0,2,3,nabc\n"))
    assert answers.triplets.tolist() == [[0, 1, 2]]
    assert answers.report.undecided == (2, 3, 4)
    assert answers.report.never_compared == (3,)


@pytest.mark.parametrize("word", ["equal", "Tie", "SAME", "="])
@pytest.mark.parametrize(
    "text",
    [
        "head,a,b,answer\nape,bee,cat,bee\nbee,cat,ape,{}\ncat,ape,bee,ape\n",
        "head,a,b,answer\nape,bee,cat,<\nbee,cat,ape,{}\ncat,ape,bee,true\n",
        "head,left,right,chosen\nape,bee,cat,bee\nbee,cat,ape,{}\ncat,ape,bee,ape\n",
        "item1,item2,item3,odd\nape,bee,cat,bee\nbee,cat,ape,{}\ncat,ape,bee,ape\n",
        "item1,item2,item3,choice\nape,bee,cat,bee\nbee,cat,ape,{}\ncat,ape,bee,ape\n",
    ],
)
def test_a_word_for_equal_is_undecided(write, text, word):
    with pytest.warns(DroppedRows, match="undecided: 1 of 3 answers"):
        answers = nearer.read_triplets(write(text.format(word)))
    assert answers.labels == ("ape", "bee", "cat")
    assert answers.report.undecided == (3,)


def test_an_object_may_be_called_tie(write):
    text = "head,a,b,answer\nhat,tie,cap,tie\ncap,hat,tie,{}\ntie,cap,hat,hat\n"
    answers = nearer.read_triplets(write(text.format("tie")))
    assert answers.labels == ("cap", "hat", "tie")
    assert len(answers) == 3
    with pytest.raises(InvalidInput, match="line 4: 'tie' was chosen but not shown"):
        nearer.read_triplets(write(text.format("tie").replace(",hat,hat", ",hat,tie")))


def test_what_answers_are_understood_is_said_and_how_to_leave_others_out(write):
    text = "head,a,b,answer\n" + 2 * "ape,bee,cat,bee\n" + "cat,ape,bee,ape\n"
    text += "bee,cat,ape,x\ncat,ape,bee,y\n"
    message = r"line 5: 'x' was chosen but not shown.* equal, tie, same; .* --drop-bad-rows.*1 more"
    with pytest.raises(InvalidInput, match=message):
        nearer.read_triplets(write(text))
    with pytest.warns(DroppedRows, match="could not be read: 2 of 5"):
        answers = nearer.read_triplets(write(text), drop_bad_rows=True)
    assert answers.report.bad == (5, 6)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("item1,item2,odd\n3,1,0\n", "auto"),
        ("item1,item2,item3,odd\n3,0,1,0\n", "auto"),
        ("3,1,0\n", "odd-one-out"),
        ("0 3 1 0\n", "odd-one-out"),
    ],
)
def test_odd_one_out(write, text, kind):
    answers = nearer.read_triplets(write(text), kind=kind)
    assert sorted(answers.triplets.tolist()) == [[1, 3, 0], [3, 1, 0]]
    assert answers.report.rows == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("chosen_center,triplet_object_1,triplet_object_2,triplet_object_3\n5,2,5,4\n", "auto"),
        ("item1,central,item2\n2,5,4\n", "auto"),
        ("5,2,4\n", "most-central"),
        ("2,5,4,5\n", "most-central"),
    ],
)
def test_most_central(write, text, kind):
    answers = nearer.read_triplets(write(text), kind=kind, objects="names")
    assert answers.labels == ("2", "4", "5")
    assert sorted(answers.triplets.tolist()) == [[0, 2, 1], [1, 2, 0]]


def test_participants_follow_both_triplets_of_an_answer(write):
    answers = nearer.read_triplets(write("item1,item2,odd,participant\n0,1,2,p\n3,4,5,q\n"))
    assert answers.people.tolist() == ["p", "p", "q", "q"]


@pytest.mark.parametrize("pack", [gzip, lzma, bz2])
def test_compressed(tmp_path, pack):
    suffix = {gzip: "gz", lzma: "xz", bz2: "bz2"}[pack]
    file = tmp_path / f"answers.csv.{suffix}"
    file.write_bytes(pack.compress(b"0,1,2\n2,0,1\n1,2,0\n"))
    assert nearer.read_triplets(file).triplets.tolist() == ROWS
    file.write_bytes(file.read_bytes()[:-12])
    with pytest.raises(InvalidInput, match=r"cannot be read as a .\w+ file"):
        nearer.read_triplets(file)


def test_numpy_files(tmp_path):
    rows, asked = np.array(ROWS), np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0]])
    np.save(tmp_path / "order.npy", rows.astype(np.uint32))
    np.save(tmp_path / "four.npy", np.c_[asked, [1, -1, 1]])
    np.savez(tmp_path / "order.npz", rows)
    np.savez(tmp_path / "bool.npz", query=asked, response=np.array([True, False, True]))
    np.savez(tmp_path / "sign.npz", questions=asked, answers=[1, -1, 1], labels=list("abcd"))
    (tmp_path / "order.npy.gz").write_bytes(gzip.compress((tmp_path / "order.npy").read_bytes()))
    for name in ("order.npy", "four.npy", "order.npz", "bool.npz", "sign.npz", "order.npy.gz"):
        answers = nearer.read_triplets(tmp_path / name)
        assert answers.triplets.tolist() == ROWS, name
        assert answers.triplets.dtype == np.int64
    assert nearer.read_triplets(tmp_path / "sign.npz").report.never_compared == (3,)
    odd = nearer.read_triplets(tmp_path / "order.npy", kind="odd-one-out")
    assert odd.triplets[:2].tolist() == [[0, 1, 2], [1, 0, 2]]


def test_columns_by_name_and_position(write):
    file = write("id,ref,same,other\n7,0,1,2\n8,2,0,1\n9,1,2,0\n")
    by_name = {"head": "ref", "near": "same", "far": "other"}
    assert nearer.read_triplets(file, columns=by_name).triplets.tolist() == ROWS
    by_position = {"head": 1, "near": 2, "far": 3}
    answers = nearer.read_triplets(file, columns=by_position, header=True)
    assert answers.triplets.tolist() == ROWS
    assert answers.report.unread_columns == ("id",)


def test_answer_or_chosen_where_both_are_possible(write):
    file = write("head,left,right,answer\n2,0,1,1\n2,0,1,1\n")
    with pytest.raises(InvalidInput, match="line 2: answer '1' may be an object or whether"):
        nearer.read_triplets(file)
    three = {"head": "head", "a": "left", "b": "right"}
    chosen = nearer.read_triplets(file, columns={**three, "chosen": "answer"})
    truth = nearer.read_triplets(file, columns={**three, "answer": "answer"})
    assert chosen.triplets[0].tolist() == [2, 1, 0]
    assert truth.triplets[0].tolist() == [2, 0, 1]


def test_names(write):
    answers = nearer.read_triplets(write("ape,bee,cat\ncat,ape,bee\n"))
    assert answers.labels == ("ape", "bee", "cat")
    assert answers.triplets.tolist() == [[0, 1, 2], [2, 0, 1]]
    file = write("ape,bee,cat\ncat,ape,bee\nNA,ape,bee\n")
    with pytest.raises(InvalidInput, match="line 3: head is 'NA', which means missing"):
        nearer.read_triplets(file)
    labels = ["cat", "bee", "ape", "dog", "NA"]
    answers = nearer.read_triplets(file, labels=labels)
    assert answers.labels == tuple(labels)
    assert answers.triplets[0].tolist() == [2, 1, 0]
    assert answers.report.never_compared == (3,)


def test_names_beside_some_of_the_numbers(write):
    text = "head,winner,loser,winner_name,loser_name\n0,1,2,bee,cat\n1,0,2,ape,cat\n"
    assert nearer.read_triplets(write(text)).labels == ("ape", "bee", "cat")


def test_numbers_stay_and_names_are_numbered(write):
    file = write("1,2,10\n2,10,1\n")
    assert nearer.read_triplets(file).n_objects == 11
    names = nearer.read_triplets(file, objects="names")
    assert names.labels == ("1", "2", "10")
    assert names.triplets.tolist() == [[0, 1, 2], [1, 2, 0]]
    for labels in (["10", "2", "1"], np.array(["10", "2", "1"])):
        assert nearer.read_triplets(file, labels=labels).triplets[0].tolist() == [2, 1, 0]
    numbers = nearer.read_triplets(file, labels=[10, 2, 1], objects="names")
    assert numbers.triplets[0].tolist() == [2, 1, 0]
    with pytest.raises(InvalidInput, match="is not among the 0 labels given"):
        nearer.read_triplets(file, labels=[], objects="names")
    with pytest.raises(InvalidInput, match="'10': numbers run from 0 and there are 3 labels"):
        nearer.read_triplets(file, labels=["a", "b", "c"])


def test_nothing_is_dropped_silently(write):
    file = write("head,winner,loser\n0,1,2\n0,0,2\n3,3,3\n0,2,1\n0,2,1\n4,5,6\n0,,1\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = nearer.read_triplets(file, drop_bad_rows=True).report
    assert [str(w.message).partition(", the first")[0] for w in caught] == [
        "left out, an object is named twice: 2 of 7 answers",
        "left out, could not be read: 1 of 7 answers",
    ]
    assert all(w.filename == __file__ for w in caught)
    assert report.degenerate == (3, 4)
    assert report.bad == (8,)
    assert (report.rows, report.triplets, report.duplicates, report.contradictions) == (7, 4, 1, 1)
    assert report.never_compared == (3,)
    assert report.groups == ((0, 1, 2), (4, 5, 6))
    text = str(report)
    assert "left out, an object twice in the question: 2 (lines 3, 4)" in text
    assert "never compared: 3" in text
    assert "2 groups" in text
    assert report.disagreement == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "has no rows"),
        ("head,winner,loser\n", {}, "a header and no rows"),
        ("0,1,2\n0,1\n", {}, "line 2: has 2 fields where line 1 has 3"),
        ("0,1,2\n\n0,1,x\n", {}, "line 3: object 'x' is not a whole number, but 3 of 4"),
        ("0,1,2\n0,1,2.5\n", {}, "line 2: object '2.5' is not a whole number"),
        ("0,1,2\n0,1,-2\n", {}, "line 2: object '-2': numbers run from 0"),
        ("0,1,2\n0,1,99999999\n", {}, r"99999999.*objects=.names"),
        ("0,1,2\n,1,2\n", {}, "line 2: head is empty"),
        ("head,near,far\na,b,c\nhead,near,far\nb,c,a\n", {}, "line 3: repeats the header; take it"),
        ("x,y,z,3\ny,z,x,1\nz,x,y,2\n", {}, "--columns item1=0,item2=1,item3=2,answer=3"),
        ("0,1\n", {}, "columns 1 to 2 without a known header make no"),
        ("0,1,2,<\n0,1,2,?\n", {}, "line 2: '\\?' was chosen but not shown"),
        ("0,1,2,0\n0,1,2,2\n", {}, "line 2: '2' was chosen but not shown"),
        ("head,left,right,winner\n0,1,2,3\n", {}, "line 2: '3' was chosen but not shown"),
        ("Center,Left,Right,Answer\na,b,c,b\na,b,c,d\na,b,c,c\n", {}, "line 3: 'd' was chosen"),
        ("item1,item2,item3,odd\n0,1,2,3\n", {}, "line 2: '3' was chosen but not shown"),
        ("ref,same,other\na,b,c\nb,c,a\n", {}, "line 1: 'ref,same,other' may be a header"),
        ("ref,same,other\n0,1,2\n", {}, r"columns=\{'head': 'ref'"),
        ("#a,#b,#c\n#d,#e,#f\n", {}, "has no rows"),
        ("#x,y,z\ny,z,x\n", {}, "line '#x,y,z' may be a header, a comment or an answer"),
        ("head,left,right\n0,1,2\n", {"header": True}, "make no answer; needed are"),
        (
            "head,winner,winner,loser\n0,1,2,3\n",
            {},
            r"\.csv: header head,winner,winner,loser has winner 2 times; rename or drop",
        ),
        ("a,b,b\n0,1,2\n", {"columns": {"head": "a", "near": "b", "far": 2}}, "has b 2 times"),
        ("a,b,c\n0,1,2\n", {"columns": {"top": "a"}}, "'top' is no part"),
        ("a,b,c\n0,1,2\n", {"columns": {"head": "z"}}, "the columns are a, b, c"),
        ("0,1,2\n", {"columns": {"head": 3}}, "a position from 0 to 2"),
        ("0,1,2\n", {"kind": "pairs"}, "kind='pairs': must be"),
        ("0,1,2\n", {"objects": "ids"}, "objects='ids': must be"),
        ("0,1,2\n", {"labels": ["a", "b", "a"]}, "label 'a' occurs twice"),
        ("a,b,c\n0,x,y\nx,y,z\n", {"labels": ["x", "y"], "objects": "names"}, "line 2: object '0'"),
        ("a,b,c,weight\n0,1,2,1\n0,1,2,-1\n", {}, "line 3: weight '-1': must be"),
        ("a,b,c,weight\n0,1,2,1\n0,1,2,much\n", {}, "line 3: weight 'much': must be"),
        (
            "head,winner,loser,head_name\n0,1,2,ape\n0,2,1,bee\n",
            {},
            "line 3: object 0 is called 'bee', and 'ape' elsewhere",
        ),
        ('0,1,2\n0,1,"2\n', {}, "line 2: unexpected end of data; check the quotes"),
    ],
)
def test_bad_files_say_where_what_and_the_remedy(write, text, options, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.read_triplets(write(text), **options)


def test_only_the_first_sheet_of_a_workbook_is_read_and_that_is_said(tmp_path):
    answers = pd.DataFrame({"head": [0, 1], "near": [1, 2], "far": [2, 0]})
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        for sheet in ("pilot", "main"):
            answers.to_excel(book, sheet_name=sheet, index=False)
    with pytest.warns(AnswersWarning, match="only the sheet 'pilot' is read; save 'main' sep"):
        assert len(nearer.read_triplets(tmp_path / "two.xlsx")) == 2


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        nearer.read_triplets(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="a folder without Parquet"):
        nearer.read_triplets(tmp_path)
    (tmp_path / "bad.csv").write_bytes(b"0,1,\xff\n")
    with pytest.raises(InvalidInput, match="byte 4 is not UTF-8"):
        nearer.read_triplets(tmp_path / "bad.csv")
    (tmp_path / "bad.npy").write_bytes(b"0,1,2\n")
    with pytest.raises(InvalidInput, match="not a NumPy file"):
        nearer.read_triplets(tmp_path / "bad.npy")


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"other": [[0, 1, 2]]}, "holds other; it needs an array called 'triplets'"),
        ({"triplets": [0, 1, 2]}, "shape \\(3,\\)"),
        ({"triplets": [[0, 1, 2.5]]}, "row 0: object '2.5' is not a whole number"),
        ({"questions": [[0, 1, 2]]}, "questions without 'answers'"),
        ({"questions": [[0, 1, 2]], "answers": [1, 1]}, "answers of shape"),
        ({"questions": [[0, 1, 2]], "answers": [0.5]}, "row 0: '0.5' was chosen but not shown"),
        ({"triplets": [[0, 1, 2]], "weights": [1, 1]}, "weights of shape"),
        (
            {"triplets": [[0, 1, 2]], "labels": ["a", "b"]},
            "row 0: object '2': numbers run from 0 and there are 2 labels",
        ),
        ({"triplets": np.array([["a", "b", "c"]], dtype=object)}, "not a NumPy file of plain"),
    ],
)
def test_bad_arrays(tmp_path, held, message):
    np.savez(tmp_path / "bad.npz", **held)
    with pytest.raises(InvalidInput, match=message):
        nearer.read_triplets(tmp_path / "bad.npz")


def test_options_that_a_file_has_no_use_for_are_refused(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[1, 2, 10], [2, 10, 1]]))
    with pytest.raises(InvalidInput, match="are for tables, leave them out"):
        nearer.read_triplets(tmp_path / "t.npy", columns={"head": 0})
    with pytest.raises(InvalidInput, match="are for tables, leave them out"):
        nearer.read_triplets(tmp_path / "t.npy", header=False)
    names = nearer.read_triplets(tmp_path / "t.npy", objects="names")
    assert names.labels == ("1", "2", "10")
    assert names.triplets.tolist() == [[0, 1, 2], [1, 2, 0]]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"columns": "zz"}, "columns='zz': must be the column of each part"),
        ({"header": "no"}, "header='no': must be one of True, False, 'auto'"),
        ({"drop_bad_rows": "no"}, "drop_bad_rows='no': must be one of True, False"),
    ],
)
def test_options_of_the_wrong_kind_are_refused(tmp_path, option, message):
    (tmp_path / "t.csv").write_text("head,winner,loser\n0,1,2\n")
    with pytest.raises(InvalidInput, match=message):
        nearer.read_triplets(tmp_path / "t.csv", **option)
