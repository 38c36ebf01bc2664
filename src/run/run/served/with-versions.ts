import type { Policy, Sample } from '../../../base/core/policy.ts'
import { sampled } from '../../../base/core/segment.ts'

/**
 * Labels samples with the versions announced when they began and ended, for servers that do not report theirs. A
 * sample that began before any announcement may be of any version up to the last.
 */
export function withVersions(
  policy: Policy,
  sample: Sample,
  { began, ended }: { readonly began: number | null; readonly ended: number | null },
): Sample {
  if (ended === null || policy.capabilities.version) return sample
  const first = began ?? 0
  const range = { from: Math.min(first, ended), to: Math.max(first, ended) }
  if (sample.kind === 'text') return { ...sample, version: range }
  return { ...sample, segment: sampled({ ...sample.segment, version: range }) }
}
