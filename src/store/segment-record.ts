import { type SampledSegment, type ScorerName, sampled } from '../core/segment.ts'
import type { FrameArray } from './frame.ts'

/** A sampled segment as JSON; its numbers are arrays of the frame, named by their index. */
export interface SampledRecord extends Pick<SampledSegment, 'basis' | 'version'> {
  readonly logprobs?: number
  readonly entropies?: number
  readonly top?: readonly [width: number, ids: number, logprobs: number]
  /** Under other policies, by their names. */
  readonly others?: Readonly<Partial<Record<ScorerName, number>>>
}

/** Records a sampled segment; `keep` puts an array into the frame and gives its index. */
export function toSampledRecord(
  { logprobs, basis, version, entropies, top, others }: SampledSegment,
  keep: (array: FrameArray) => number,
): SampledRecord {
  return {
    basis,
    version,
    ...(logprobs && { logprobs: keep(logprobs) }),
    ...(entropies && { entropies: keep(entropies) }),
    ...(top && { top: [top.width, keep(top.ids), keep(top.logprobs)] as const }),
    ...(others && {
      others: Object.fromEntries(Object.entries(others).map(([name, own]) => [name, keep(own)])),
    }),
  }
}

/** The segment with these ids that was recorded; lengths are checked again as it is made. */
export function fromSampledRecord(
  ids: Int32Array,
  { logprobs, basis, version, entropies, top, others }: SampledRecord,
  arrays: readonly FrameArray[],
): SampledSegment {
  return sampled({
    ids,
    logprobs: logprobs === undefined ? null : (arrays[logprobs] as Float32Array),
    basis,
    version,
    ...(entropies !== undefined && { entropies: arrays[entropies] as Float32Array }),
    ...(top && {
      top: {
        width: top[0],
        ids: arrays[top[1]] as Int32Array,
        logprobs: arrays[top[2]] as Float32Array,
      },
    }),
    ...(others && {
      others: Object.fromEntries(
        Object.entries(others).map(([name, at]) => [name, arrays[at] as Float32Array]),
      ),
    }),
  })
}
