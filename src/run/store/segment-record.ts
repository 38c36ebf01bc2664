import type { RoutedExperts } from '../../base/core/experts.ts'
import { type SampledSegment, type ScorerName, sampled } from '../../base/core/segment.ts'
import type { FrameArray } from './frame.ts'

/** A sampled segment as JSON; its numbers are arrays of the frame, named by their index. */
export interface SampledRecord extends Pick<SampledSegment, 'basis' | 'version'> {
  readonly logprobs?: number
  readonly entropies?: number
  readonly top?: readonly [width: number, ids: number, logprobs: number]
  readonly experts?: readonly [
    layers: number,
    top: number,
    before: number,
    bytes: 1 | 2,
    data: number,
  ]
  /** Under other policies, by their names. */
  readonly others?: Readonly<Partial<Record<ScorerName, number>>>
}

/**
 * Adds a sampled segment to a record; `keep` puts an array into the frame and returns its index. The
 * record is filled in place, which saves an object for every turn of every attempt.
 */
export function addSampled<Fields extends object>(
  fields: Fields,
  { logprobs, basis, version, entropies, top, others, experts }: SampledSegment,
  keep: (array: FrameArray) => number,
): Fields & SampledRecord {
  const record = fields as Fields & { -readonly [Key in keyof SampledRecord]: SampledRecord[Key] }
  record.basis = basis
  record.version = version
  if (logprobs) record.logprobs = keep(logprobs)
  if (entropies) record.entropies = keep(entropies)
  if (top) record.top = [top.width, keep(top.ids), keep(top.logprobs)]
  if (experts) record.experts = toExpertsRecord(experts, keep)
  if (others) {
    const kept = Object.entries(others).map(([name, own]) => [name, keep(own)])
    record.others = Object.fromEntries(kept)
  }
  return record
}

/** The fields that `addSampled` adds, as JSON: nearly all segments are a few numbers in fixed words. */
export function sampledToJson(
  segment: SampledSegment,
  keep: (array: FrameArray) => number,
): string {
  const { logprobs, basis, version, entropies, top, others, experts } = segment
  const { from, to } = version
  const isPlain = logprobs && !(entropies || top || others || experts)
  if (!isPlain || !Number.isFinite(from) || !Number.isFinite(to)) {
    return JSON.stringify(addSampled({}, segment, keep)).slice(1, -1)
  }
  return `"basis":"${basis}","version":{"from":${from},"to":${to}},"logprobs":${keep(logprobs)}`
}

/** The segment with these ids that was recorded; lengths are checked again as it is made. */
export function fromSampledRecord(
  ids: Int32Array,
  { logprobs, basis, version, entropies, top, others, experts }: SampledRecord,
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
    ...(experts && { experts: fromExpertsRecord(experts, arrays) }),
    ...(others && {
      others: Object.fromEntries(
        Object.entries(others).map(([name, at]) => [name, arrays[at] as Float32Array]),
      ),
    }),
  })
}

/** Frames store bytes; 16-bit numbers are stored as two bytes each. */
function toExpertsRecord(
  { layers, top, before, data }: RoutedExperts,
  keep: (array: FrameArray) => number,
): NonNullable<SampledRecord['experts']> {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return [layers, top, before, data.BYTES_PER_ELEMENT as 1 | 2, keep(bytes)]
}

function fromExpertsRecord(
  [layers, top, before, bytes, at]: NonNullable<SampledRecord['experts']>,
  arrays: readonly FrameArray[],
): RoutedExperts {
  const kept = arrays[at] as Uint8Array
  // Copied, because the bytes may not be aligned for 16-bit numbers.
  const data = bytes === 1 ? kept : new Uint16Array(kept.slice().buffer)
  return { layers, top, before, data }
}
