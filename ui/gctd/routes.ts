// The screens. Each is a file of its own, read when it is first opened; the server answers with the page at each of the patterns
// (`SCREENS` in gctd/http/api.py).

import type { FunctionComponent } from "preact";
import type { Params } from "../kit/router";

export interface Screen {
  /** Addresses; the first is the one that the navigation leads to. */
  patterns: readonly string[];
  title: string;
  /** In the navigation, and the key after `g` that leads there; without one it is reached from other screens only. */
  key?: string;
  load: () => Promise<{ default: FunctionComponent<ScreenProps> }>;
}

export interface ScreenProps {
  params: Params;
}

export const SCREENS: readonly Screen[] = [
  { patterns: ["/"], title: "Overview", key: "o", load: () => import("./screens/overview") },
  { patterns: ["/tasks", "/tasks/:id"], title: "Tasks", key: "t", load: () => import("./screens/tasks") },
  { patterns: ["/analyses", "/analyses/:id"], title: "Analyses", key: "a", load: () => import("./screens/analyses") },
  { patterns: ["/analyses/:id/history"], title: "History", load: () => import("./screens/history") },
  { patterns: ["/workers"], title: "Workers", key: "w", load: () => import("./screens/workers") },
  { patterns: ["/repos", "/repos/:id"], title: "Repositories", key: "r", load: () => import("./screens/repos") },
  { patterns: ["/log", "/log/:position"], title: "Event log", key: "e", load: () => import("./screens/log") },
  { patterns: ["/projections"], title: "Projections", key: "j", load: () => import("./screens/projections") },
];
