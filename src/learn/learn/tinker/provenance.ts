import type { TinkerDatum } from '../../../engine/policies/tinker/messages.ts'
import { cutSpans, type Provenance } from '../../../engine/policies/tinker/provenance.ts'
import type { MemberRow } from '../../../run/rows/row-record.ts'
import type { Datum } from '../../../run/sinks/formats/tinker.ts'

/**
 * A row's datum with the server's sequences that its tokens come from: inputs are all tokens but the
 * last, targets all but the first. If some token's sequence is unknown, the datum names none, as the API requires.
 */
export function withProvenance(
  datum: Datum,
  { row }: MemberRow,
  provenance: Provenance,
): TinkerDatum {
  const sampled = row.origins.filter(({ value }) => value === 'sampled')
  const spans = provenance.spansOf(row.ids, sampled)
  if (!spans) return datum
  const size = row.ids.length - 1
  return {
    ...datum,
    spans: { input: cutSpans(spans, 0, size), targets: cutSpans(spans, 1, size + 1) },
  }
}
