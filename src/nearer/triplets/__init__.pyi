from .read import read_trials as read_trials
from .read import read_triplets as read_triplets
from .table import read_table as read_table
from .write import write_trials as write_trials
from .write import write_triplets as write_triplets
