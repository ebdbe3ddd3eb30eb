// A newer version of the page is loaded on request, never under the hands of somebody who books.

import { useCell } from "../../kit/data/cell";
import { newVersion, takeNewVersion } from "./register";

export function NewVersion() {
  const worker = useCell(newVersion);
  if (!worker) return null;
  return (
    <p class="line" role="status">
      There is a newer version of this page.
      <button type="button" onClick={() => takeNewVersion(worker)}>
        Load it
      </button>
    </p>
  );
}
