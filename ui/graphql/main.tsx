import { render } from "preact";
import "../kit/page/base.css";
import "../kit/parts/parts.css";
import { startTheme } from "../kit/page/theme";
import { nameService } from "../kit/page/title";
import "./graphql.css";
import { Page } from "./page";

startTheme();
nameService("GraphQL");
const app = document.getElementById("app");
const name = decodeURIComponent(/\/function\/([^/]+)/.exec(location.pathname)?.[1] ?? "graphql");
if (app) render(<Page name={name} />, app);
