import { render } from "preact";
import "../kit/page/base.css";
import "../kit/parts/parts.css";
import { startTheme } from "../kit/page/theme";
import { settled } from "./actions";
import { Kitchen } from "./kitchen";
import "./kitchen.css";
import { stream } from "./live";
import { startProducts } from "./products";
import { startQueue } from "./queue";

startTheme();
startProducts();
void startQueue(settled);
stream.start();
const app = document.getElementById("app");
if (app) render(<Kitchen />, app);
