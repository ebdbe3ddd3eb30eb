// The balances, and each change as it happens: EventSource reconnects and resumes by itself.
const body = document.getElementById("balances");
const state = document.getElementById("state");

function show({ id, cents }) {
  let row = document.getElementById(`account-${id}`);
  if (row === null) {
    row = body.insertRow();
    row.id = `account-${id}`;
    row.insertCell().textContent = id;
    row.insertCell();
  }
  row.cells[1].textContent = cents;
}

async function follow() {
  const events = new EventSource("/api/events");
  let changed = new Set(); // accounts with an event on this connection: the list may be older
  events.onopen = async () => {
    const here = (changed = new Set());
    const balances = await (await fetch("/api/accounts")).json();
    if (here !== changed) return; // the connection was lost
    for (const balance of balances) if (!changed.has(balance.id)) show(balance);
    state.textContent = "live";
  };
  events.onerror = () => {
    changed = new Set();
    state.textContent = "reconnecting";
  };
  events.addEventListener("balance", (event) => {
    const balance = JSON.parse(event.data);
    changed.add(balance.id);
    show(balance);
  });
}

follow();
