import type { Ledger } from '../learn/learn/steps/ledger.ts'

/** Whole numbers: a sum that closes to the token is shown to the token. */
const count = (tokens: number): string => tokens.toLocaleString('en-US')

/** What became of every token of a training run, as a sum. */
export function ledgerLine({ sampled, learned, dropped, inFlight, heldOut }: Ledger): string {
  const parts = [
    ['learned', learned],
    ...Object.entries(dropped).map(([reason, tokens]) => [`dropped: ${reason}`, tokens] as const),
    ['in flight', inFlight],
    ['held out', heldOut],
  ] as const
  const shown = parts.filter(([, tokens]) => tokens > 0)
  return `${count(sampled)} sampled = ${shown.map(([name, tokens]) => `${count(tokens)} ${name}`).join(' + ')}`
}
