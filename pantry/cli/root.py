"""The program `pantry`: its commands and its help."""

from __future__ import annotations

from terminalkit import Command, ExitCode, Program

PROGRAM = Program(
    name="pantry",
    summary="Keep the stock of a pantry: products by their barcodes, movements in and out, low stock.",
    epilog="""\b
Examples:
  pantry up                                                      run the ledger, with its own NATS
  pantry product add 4006381333931 --name Flour --unit kg        keep a product
  pantry movement add --ean 4006381333931 --in 10.3              what comes in
  pantry scan                                                    each code that is scanned goes out
  pantry report shopping-list                                    what to buy

\b
Settings come from flags, then PANTRY_* in the environment, then .pantry.yaml: see `pantry config show`.""",
    commands={
        "up": Command(
            "pantry.cli.processes.up", "Run the ledger on this machine, with its own NATS: API, event stream and page."
        ),
        "serve": Command("pantry.cli.processes.service", "Run the ledger: API, event stream and page."),
        "run": Command("pantry.cli.processes.service", "The same as `serve`."),
        "scan": Command("pantry.cli.scan.commands", "Read codes from standard input, one on a line, and book each at once."),
        "stock": Command("pantry.cli.reports.stock", "Print the stock of the product with the code EAN."),
        "product": Command(
            "pantry.cli.products.products", "List, show, create, import and change products, and count what is there."
        ),
        "code": Command("pantry.cli.products.codes", "List, show, assign and remove the barcodes of products."),
        "category": Command("pantry.cli.products.categories", "List, create and change categories."),
        "movement": Command("pantry.cli.movements.commands", "Book, list, show, undo and import movements."),
        "person": Command("pantry.cli.access.people", "Erase what is known of a person."),
        "report": Command("pantry.cli.reports.commands", "Stock, low stock, consumption, shopping list."),
        "watch": Command("pantry.cli.watching", "Follow the events of the pantry."),
        "migrate": Command("pantry.cli.data.migrate", "Apply and take back migrations of the tables."),
        "takeover": Command("pantry.cli.data.takeover", "Take over the data of the first pantry program."),
        "pair": Command(
            "pantry.cli.access.pairing",
            "Show a QR code that opens the page of the kitchen on a phone, and signs the phone in under NAME.",
        ),
        "token": Command("pantry.cli.access.tokens", "Create, list and revoke the tokens of the API."),
        "config": Command("pantry.cli.processes.service", "Show the settings and where each comes from."),
        "completion": Command(
            "pantry.cli.completion", "Print the script that lets SHELL complete commands, products and categories."
        ),
    },
    meanings={ExitCode.PARTIAL: "done in part: rows of an import, or lines of a scan, were refused or are not known"},
    hints={ExitCode.TIMEOUT: "allow more time with --timeout"},
    asking={
        ExitCode.UNAVAILABLE: "is the server running? start it with: pantry up; or set its address with --url or PANTRY_URL",
        ExitCode.NOT_ALLOWED: "set PANTRY_AUTH_TOKEN to a token of the server, with the scope it needs: pantry token create",
    },
)

main = PROGRAM.run
