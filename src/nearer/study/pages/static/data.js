import "./dashboard.js";
