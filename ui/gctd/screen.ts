// The type of a screen of the dashboard, and of its properties.

import type { FunctionComponent } from "preact";
import type { Params } from "../kit/page/router";

export interface Screen {
  /** Addresses; the navigation links to the first. */
  patterns: readonly string[];
  title: string;
  /** In the navigation, and the key after `g` that leads there; without one it is reached from other screens only. */
  key?: string;
  /** One of the screens for operators; they share an entry of the navigation. */
  isOperation?: boolean;
  /** The entry of the navigation that a screen without a key belongs to, by title. */
  under?: string;
  load: () => Promise<{ default: FunctionComponent<ScreenProps> }>;
}

export interface ScreenProps {
  params: Params;
}
