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
  events.onopen = async () => {
    const answer = await fetch("/api/accounts");
    for (const balance of await answer.json()) show(balance);
    state.textContent = "live";
  };
  events.onerror = () => (state.textContent = "reconnecting");
  events.addEventListener("balance", (event) => show(JSON.parse(event.data)));
}

follow();
