/**
 * Options that readers of a run folder go by: exports weigh groups as the run did, and `compare` counts success as it did.
 * A run that was begun by flags records all of its settings, these among them.
 */
const names = [
  'advantage',
  'weighting',
  'overlong',
  'distill',
  'voidTurns',
  'klPenalty',
  'klIn',
  'proximal',
  'importance',
  'loss',
  'sinks',
  'successAt',
  'seed',
] as const

/** Options under the names that a run folder records them by; those that are not given are left out. */
export function recordedOptions(
  options: Readonly<Partial<Record<(typeof names)[number], unknown>>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    names.flatMap(name => (options[name] === undefined ? [] : [[name, options[name]]])),
  )
}
