// The way back: the pages above this one, from the outermost on.

import { Link } from "./router";

export interface Crumb {
  name: string;
  to: string;
}

/** `above` are the pages above this one, `here` is the name of this one. */
export function Crumbs({ above, here }: { above: readonly Crumb[]; here: string }) {
  return (
    <nav class="crumbs" aria-label="Breadcrumb">
      <ol>
        {above.map(({ name, to }) => (
          <li key={to}>
            <Link to={to}>{name}</Link>
          </li>
        ))}
        <li aria-current="page">{here}</li>
      </ol>
    </nav>
  );
}
