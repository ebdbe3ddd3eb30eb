import { render } from "preact";
import "../kit/base.css";
import "../kit/parts.css";
import { startTheme } from "../kit/theme";
import { Kitchen } from "./kitchen";
import "./kitchen.css";
import { stream } from "./live";
import { startProducts } from "./products";

startTheme();
startProducts();
stream.start();
const app = document.getElementById("app");
if (app) render(<Kitchen />, app);
