import { render } from "preact";
import "../kit/page/base.css";
import "../kit/parts/parts.css";
import { startTheme } from "../kit/page/theme";
import { settled } from "./actions";
import { Kitchen } from "./kitchen";
import "./kitchen.css";
import { stream } from "./data/live";
import { startBarcodes } from "./data/barcodes";
import { signInByCode } from "./data/pairing";
import { startProducts } from "./data/products";
import { startQueue } from "./data/queue";
import { startOffline } from "./offline/register";

async function start(): Promise<void> {
  startTheme();
  await signInByCode();
  void startProducts();
  void startBarcodes();
  void startQueue(settled);
  stream.start();
  startOffline();
  const app = document.getElementById("app");
  if (app) render(<Kitchen />, app);
}

void start();
