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

function follow() {
  const events = new EventSource("/api/events");
  let connection = 0;
  const shownAt = new Map(); // the sequence of the log by account: a list or an event may come after newer ones
  const take = (balance, sequence) => {
    if (sequence < (shownAt.get(balance.id) ?? 0)) return;
    shownAt.set(balance.id, sequence);
    show(balance);
  };
  events.onopen = async () => {
    const here = ++connection;
    const answer = await fetch("/api/accounts");
    const balances = await answer.json();
    if (here !== connection) return; // the connection was lost
    for (const balance of balances) take(balance, Number(answer.headers.get("Event-Sequence")));
    state.textContent = "live";
  };
  events.onerror = () => {
    connection += 1;
    state.textContent = "reconnecting";
  };
  events.addEventListener("reset", () => location.reload()); // the sequences are of another log
  events.addEventListener("balance", (event) => take(JSON.parse(event.data), Number.parseInt(event.lastEventId)));
}

follow();
