// A screen that cannot be drawn shows an error, and the rest of the page works.

import { Component, type ComponentChildren } from "preact";
import { ErrorPanel } from "../parts/states";

export class ErrorBoundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state = { error: null as unknown };

  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ error });
  }

  override render() {
    if (this.state.error) return <ErrorPanel error={this.state.error} retry={() => this.setState({ error: null })} />;
    return this.props.children;
  }
}
