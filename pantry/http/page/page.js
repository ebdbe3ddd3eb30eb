// The kitchen's page: find or scan a product, see its stock, book in and out, undo.

import { Refused, Unknown, change, read, readAll, signIn } from "./api.js";
import { close, hasCamera, scan } from "./camera.js";
import { amount, code, isSound, quantity } from "./codes.js";
import { follow } from "./live.js";
import { isLow, matching, product, put, putAll } from "./products.js";

const MOST = 200;
const $ = (id) => document.getElementById(id);

let selected = null;
let unknownCode = null;
let following = false;
const booked = [];

// Messages

function say(text) {
  $("said").textContent = text;
  $("problem").textContent = "";
  $("again").hidden = true;
  $("undo").hidden = booked.length === 0;
}

function complain(error, repeat = null) {
  const signedOut = error instanceof Refused && error.status === 401;
  $("said").textContent = "";
  $("problem").textContent = error.message;
  $("again").hidden = repeat === null || signedOut;
  $("again").onclick = repeat;
  $("undo").hidden = booked.length === 0 || repeat !== null; // an unknown booking cannot be undone
  if (signedOut) askForToken();
}

function askForToken() {
  $("signin").hidden = false;
  $("token").focus();
}

// The list of products

function row(one) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.ean13 = one.ean13;
  for (const name of ["name", "low", "amount"]) {
    const cell = document.createElement("span");
    cell.className = name;
    button.append(cell);
  }
  button.addEventListener("click", () => {
    select(one.ean13);
    $("product").scrollIntoView({ block: "nearest" });
    $("name").focus({ preventScroll: true });
  });
  item.append(button);
  return item;
}

const rows = new Map();

function drawList() {
  const found = matching($("query").value);
  const shown = found.slice(0, MOST).map((one) => {
    const item = rows.get(one.ean13) ?? row(one);
    rows.set(one.ean13, item);
    const [name, low, stock] = item.firstChild.children;
    name.textContent = one.name;
    low.textContent = isLow(one) ? "low" : "";
    low.hidden = !isLow(one);
    stock.textContent = `${amount(one.current_stock)} ${one.unit}`;
    item.firstChild.setAttribute("aria-pressed", String(one.ean13 === selected));
    return item;
  });
  const list = $("list");
  if (shown.length !== list.children.length || shown.some((item, place) => item !== list.children[place])) {
    const focused = document.activeElement;
    list.replaceChildren(...shown);
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }
  const low = found.filter(isLow).length;
  const more = found.length > MOST ? `, the first ${MOST} of them here` : "";
  const text = found.length === 0 ? "none; scan a code to add one" : `${found.length}${more}, ${low} low`;
  if ($("count").textContent !== text) $("count").textContent = text;
}

function drawProduct() {
  const one = selected && product(selected);
  $("product").hidden = !one;
  if (!one) return;
  $("name").textContent = one.name;
  $("stock").textContent = `${amount(one.current_stock)} ${one.unit}`;
  $("low").hidden = !isLow(one);
  $("about").textContent = `${one.ean13}, low at ${amount(one.min_stock)} ${one.unit}${one.active ? "" : ", not kept any more"}`;
  $("unit").textContent = one.unit;
  $("activate").hidden = one.active;
}

let drawing = false;
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawList();
    drawProduct();
  });
}

function select(ean13) {
  selected = ean13;
  unknownCode = null;
  $("create").hidden = true;
  $("quantity").value = "1";
  drawList();
  drawProduct();
}

function offerToCreate(ean13) {
  selected = null;
  unknownCode = ean13;
  $("new-code").textContent = ean13;
  $("create").hidden = false;
  drawList();
  drawProduct();
  $("new-name").focus();
}

// Changes: one after the other, in the order of the taps and scans

let last = Promise.resolve();
function inOrder(work) {
  last = last.then(work).catch((error) => complain(error));
  return last;
}

// Make a change. If its outcome is unknown, it can be repeated as the same one.
async function perform(make, done) {
  try {
    await done((await make()).body);
  } catch (error) {
    if (!(error instanceof Unknown)) throw error;
    complain(new Error(`not known whether this was done: ${error.message}`), () => inOrder(() => perform(make, done)));
  }
}

async function look(ean13) {
  const { found, position } = await readAll(`/products?search=${ean13}`);
  const one = found.find((candidate) => candidate.ean13 === ean13);
  return one ? put(one, position) : null;
}

async function afterMovement(movement, what) {
  const one = (await look(movement.product_ean13).catch(() => null)) ?? product(movement.product_ean13);
  const { unit } = movement;
  say(`${one?.name ?? movement.product_ean13}: ${amount(movement.quantity)} ${unit} ${what}, ${amount(movement.stock_after)} ${unit} there now`);
  draw();
}

function book(ean13, type) {
  const moved = quantity($("quantity").value);
  if (!(moved > 0)) {
    complain(new Error("the quantity is a number above 0, with at most three decimal places"));
    $("quantity").focus();
    return;
  }
  const make = change("/movements", { product_ean13: ean13, type, quantity: moved });
  inOrder(() =>
    perform(make, (movement) => {
      booked.push(movement.id);
      return afterMovement(movement, type);
    }),
  );
}

function undo() {
  inOrder(async () => {
    const id = booked.pop();
    if (id === undefined) return;
    try {
      await perform(change(`/movements/${id}/undo`, {}), (movement) => afterMovement(movement, `${movement.type} again (undone)`));
    } catch (error) {
      if (!(error instanceof Refused && error.status === 409)) booked.push(id);
      throw error;
    }
  });
}

async function take(ean13) {
  if (!isSound(ean13)) throw new Error(`${ean13} is not a barcode: its last digit does not fit`);
  const one = await look(ean13);
  if (!one) {
    offerToCreate(ean13);
    return;
  }
  select(ean13);
  say("");
  const mode = document.querySelector('input[name="mode"]:checked').value;
  if (mode !== "show") book(ean13, mode);
}

function create() {
  const ean13 = unknownCode;
  const least = quantity($("new-min").value);
  if (Number.isNaN(least)) {
    complain(new Error("the low stock is a number with at most three decimal places"));
    $("new-min").focus();
    return;
  }
  const make = change(`/products/${ean13}`, { name: $("new-name").value, unit: $("new-unit").value, min_stock: least });
  inOrder(() =>
    perform(make, async (made) => {
      await look(ean13);
      $("create").reset();
      select(ean13);
      say(`${made.name} is kept now`);
      $("name").focus();
    }),
  );
}

function step(by) {
  const now = quantity($("quantity").value);
  $("quantity").value = amount(Math.max(Number.isNaN(now) ? 1 : now + by, by > 0 ? 1 : Math.min(now || 1, 1)));
}

// Updates

async function refresh() {
  const { found, position } = await readAll("/products?active=true");
  putAll(found, position);
  draw();
}

function state(text, name) {
  $("live").textContent = text;
  $("live").className = name;
}

const refreshed = () => refresh().catch((error) => complain(error));

function listen() {
  if (following) return;
  following = true;
  follow(["stock", "product"], {
    open() {
      state("live", "on");
      refreshed();
    },
    stale: (since) => state(`stale since ${since.toLocaleTimeString()}, reconnecting`, "stale"),
    reset: refreshed,
    stock({ movement, is_low_stock, ...now }, position) {
      if (product(now.ean13)) put(now, position);
      else look(now.ean13).then(draw, complain); // one that is not kept any more, or came while the list was read
      draw();
    },
    product(now, position) {
      put(now, position);
      draw();
    },
  });
}

async function start() {
  try {
    await refresh();
    $("signin").hidden = true;
    listen();
  } catch (error) {
    complain(error, start);
  }
}

$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = $("query").value;
  const scanned = code(typed);
  if (scanned) {
    $("query").value = "";
    inOrder(() => take(scanned));
    return;
  }
  const [first] = matching(typed);
  if (!first || !typed.trim()) return;
  $("query").value = "";
  select(first.ean13);
  $("name").focus();
});
$("query").addEventListener("input", drawList);
$("create").addEventListener("submit", (event) => {
  event.preventDefault();
  create();
});
$("cancel").addEventListener("click", () => {
  unknownCode = null;
  $("create").hidden = true;
  $("query").focus();
});
$("signin").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn($("token").value).then(() => {
    $("token").value = "";
    say("");
    start();
  }, complain);
});
$("out").addEventListener("click", () => book(selected, "out"));
$("in").addEventListener("click", () => book(selected, "in"));
$("less").addEventListener("click", () => step(-1));
$("more").addEventListener("click", () => step(1));
$("undo").addEventListener("click", undo);
$("activate").addEventListener("click", () => {
  const ean13 = selected;
  inOrder(() => perform(change(`/products/${ean13}/activate`, {}), () => look(ean13).then(draw)));
});
$("camera").hidden = !hasCamera;
$("camera").addEventListener("click", async () => {
  $("viewfinder").hidden = false;
  try {
    const seen = await scan($("video"));
    const scanned = seen && code(seen);
    if (scanned) inOrder(() => take(scanned));
  } catch (error) {
    complain(error);
  }
  $("viewfinder").hidden = true;
});
$("close").addEventListener("click", () => close($("video")));

start();
