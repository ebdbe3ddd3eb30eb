// The scale of risk: five colours in order of lightness, which the colour-blind can distinguish, with their meaning in numbers.

/** The upper share of risky functions of each colour; the last has none. */
const SHARES: readonly number[] = [0, 0.02, 0.05, 0.1];

function stepIn(bounds: readonly number[], value: number): number {
  const found = bounds.findIndex((bound) => value <= bound);
  return found < 0 ? bounds.length + 1 : found + 1;
}

/** The colour (1 to 5) of a place by its share of risky functions, 0 to 1. */
export const shareStep = (share: number): number => stepIn(SHARES, share);

const boundsOf = (threshold: number): readonly number[] => [threshold / 2, threshold, 2 * threshold, 4 * threshold];

/** The colour (1 to 5) of a function by its CRAP value: from the third on it is risky. */
export const valueStep = (crap: number, threshold: number): number => stepIn(boundsOf(threshold), crap);

/** The meaning of the colours of places. */
export function ShareLegend() {
  return <Legend name="risky functions" steps={["none", "to 2 %", "to 5 %", "to 10 %", "more"]} />;
}

/** The meaning of the colours of functions. */
export function ValueLegend({ threshold }: { threshold: number }) {
  const bounds = boundsOf(threshold);
  return <Legend name="CRAP" steps={[...bounds.map((bound) => `to ${bound}`), `over ${bounds.at(-1)}`]} />;
}

function Legend({ name, steps }: { name: string; steps: readonly string[] }) {
  return (
    <p class="legend">
      <span class="muted">{name}</span>
      {steps.map((step, index) => (
        <span key={step}>
          <span class={`key risk-${index + 1}`} aria-hidden="true" />
          {step}
        </span>
      ))}
    </p>
  );
}
