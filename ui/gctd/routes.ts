// The screens. Each is a separate file, read when it is first opened; the server answers with the page at each of the patterns
// (`SCREENS` of the API's route table).

import type { Screen } from "./screen";

export const SCREENS: readonly Screen[] = [
  { patterns: ["/"], title: "Overview", key: "o", load: () => import("./screens/overview") },
  { patterns: ["/repos"], title: "Repositories", key: "r", load: () => import("./screens/repos") },
  { patterns: ["/repos/:id"], title: "Repository", under: "Repositories", load: () => import("./screens/repo") },
  { patterns: ["/analyses"], title: "Analyses", key: "a", load: () => import("./screens/analyses") },
  { patterns: ["/analyses/:id"], title: "Analysis", under: "Analyses", load: () => import("./screens/analysis") },
  { patterns: ["/analyses/:id/history"], title: "History", under: "Analyses", load: () => import("./screens/history") },
  { patterns: ["/analyses/:id/compare/:pair"], title: "Comparison", under: "Analyses", load: () => import("./screens/compare") },
  { patterns: ["/analyses/:id/functions/:key"], title: "Function", under: "Analyses", load: () => import("./screens/function") },
  { patterns: ["/tasks", "/tasks/:id"], title: "Tasks", key: "t", isOperation: true, load: () => import("./screens/tasks") },
  { patterns: ["/workers"], title: "Workers", key: "w", isOperation: true, load: () => import("./screens/workers") },
  { patterns: ["/log", "/log/:position"], title: "Event log", key: "e", isOperation: true, load: () => import("./screens/log") },
  { patterns: ["/projections"], title: "Projections", key: "j", isOperation: true, load: () => import("./screens/projections") },
];
