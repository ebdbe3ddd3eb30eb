// The parts of Node that the unit tests use. All of its types would also be in effect for the pages, which run in browsers.

declare module "node:test" {
  type Run = () => void | Promise<void>;
  interface Timers {
    enable(options: { apis: readonly string[]; now?: number }): void;
    tick(milliseconds: number): void;
    reset(): void;
  }
  export function test(name: string, run: Run): void;
  export function beforeEach(run: Run): void;
  export const mock: { timers: Timers };
}

declare module "node:assert/strict" {
  interface Assert {
    (value: unknown, message?: string): asserts value;
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    match(text: string, pattern: RegExp): void;
    rejects(promise: Promise<unknown>, expected: RegExp | object): Promise<void>;
    throws(run: () => unknown, expected?: RegExp | object): void;
  }
  const assert: Assert;
  export default assert;
}
