import { crc32 } from 'node:zlib'
import type { Transition, World } from '../../base/core/environment.ts'
import type { TreeId } from '../../base/core/ids.ts'
import type {
  Finish,
  Sample,
  SampleRequest,
  TextSample,
  TokenSample,
} from '../../base/core/policy.ts'
import { type Frame, type FrameArray, toJson, type WrittenFrame } from './frame.ts'
import { isLongCall, isLongMessage } from './long-messages.ts'
import { Lifting, mayHold } from './long-texts.ts'
import { fromSampledRecord, type SampledRecord, sampledToJson } from './segment-record.ts'

/** The record of an unfinished attempt. */
export interface AttemptRecord {
  opening?: Opened
  /** What the world answered, turn by turn. */
  readonly steps: Transition[]
  /** By the `keyOf` of their requests. */
  readonly samples: Map<string, Sample>
}

/** How a world opened, and the tokens used for it. */
type Opened = Pick<World, 'opening' | 'spent'>

/** One entry of the record. */
export type AttemptEntry =
  | ({ readonly kind: 'opening'; readonly tree: TreeId } & Opened)
  | {
      readonly kind: 'step'
      readonly tree: TreeId
      readonly turn: number
      readonly transition: Transition
    }
  | {
      readonly kind: 'sample'
      readonly tree: TreeId
      readonly key: string
      readonly sample: Sample
    }
  /** The attempt diverged: everything recorded for it before this entry is void. */
  | { readonly kind: 'restart'; readonly tree: TreeId }

/** The key of a sample: its seed and its exact prompt. */
export function keyOf({ prompt }: SampleRequest, seed: number): string {
  const { ids } = prompt
  const digest =
    prompt.digest?.() ?? crc32(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength))
  return `${seed}:${ids.length}:${digest.toString(16)}`
}

/** An attempt of which nothing is known. */
export function emptyRecord(): AttemptRecord {
  return { steps: [], samples: new Map() }
}

/** Adds an entry to the record of its attempt. */
export function addEntry(record: AttemptRecord, entry: AttemptEntry): void {
  if (entry.kind === 'opening') record.opening = openedIn(entry)
  else if (entry.kind === 'step') record.steps[entry.turn] = entry.transition
  else if (entry.kind === 'sample') record.samples.set(entry.key, entry.sample)
  else {
    delete record.opening
    record.steps.length = 0
    record.samples.clear()
  }
}

function openedIn({ opening, spent }: Opened): Opened {
  return { opening, ...(spent !== undefined && { spent }) }
}

/** Entries as one frame: their tokens and numbers as arrays, all else as one piece of JSON. */
export function entriesToFrame(entries: readonly AttemptEntry[]): WrittenFrame {
  const arrays: FrameArray[] = []
  const leftOut = new Lifting()
  const keep = (array: FrameArray): number => arrays.push(array) - 1
  let json = ''
  for (const [index, entry] of entries.entries()) {
    json += `${index === 0 ? '' : ','}${entryToJson(entry, index, { leftOut, keep })}`
  }
  return { json: `{"kind":"entries","entries":[${json}]}`, leftOut, arrays }
}

interface EntryWriting {
  readonly leftOut: Lifting
  readonly keep: (array: FrameArray) => number
}

function entryToJson(entry: AttemptEntry, index: number, { leftOut, keep }: EntryWriting): string {
  if (entry.kind === 'step') return toJson(liftStep(entry, index, leftOut))
  if (entry.kind !== 'sample' || entry.sample.kind !== 'tokens') {
    return toJson(leftOut.lift(entry, 'entries', index))
  }
  const { tree, key, sample } = entry
  const { finish, usage, segment } = sample
  const tokens = `{"ids":${keep(segment.ids)},${sampledToJson(segment, keep)}}`
  const drawn = `{"kind":"tokens","finish":${finishToJson(finish)},"usage":${toJson(usage)},"tokens":${tokens}}`
  return `{"kind":"sample","tree":${toJson(tree)},"key":${toJson(key)},"sample":${drawn}}`
}

/** Nearly every sample ends in one of three ways, which are one word each. */
function finishToJson(finish: Finish): string {
  return finish.kind === 'guard' ? toJson(finish) : `{"kind":"${finish.kind}"}`
}

type StepEntry = Extract<AttemptEntry, { readonly kind: 'step' }>

/** Long texts stand in what was observed and in calls; a step without any is not searched for more. */
function liftStep(entry: StepEntry, index: number, leftOut: Lifting): StepEntry {
  const { observed, calls, anchor, spent } = entry.transition
  const isShort = !(
    mayHold(anchor) ||
    mayHold(spent) ||
    observed?.some(isLongMessage) ||
    calls?.some(isLongCall)
  )
  return isShort ? entry : leftOut.lift(entry, 'entries', index)
}

/** The entries that a frame holds. Earlier formats have one in each. */
export function entriesFromFrame({ header, arrays }: Frame): readonly AttemptEntry[] {
  const { kind } = header as { readonly kind: string }
  const records =
    kind === 'entries'
      ? (header as { readonly entries: readonly AttemptEntry[] }).entries
      : [header as AttemptEntry]
  return records.map(entry => {
    if (entry.kind !== 'sample' || entry.sample.kind !== 'tokens') return entry
    const { tokens, ...rest } = entry.sample as TokenSample & { readonly tokens: TokensRecord }
    const ids = arrays[tokens.ids ?? 0] as Int32Array
    return { ...entry, sample: { ...rest, segment: fromSampledRecord(ids, tokens, arrays) } }
  })
}

/** Sampled tokens; a frame with one entry has their ids first and does not say so. */
interface TokensRecord extends SampledRecord {
  readonly ids?: number
}

/** Recorded tokens, which need not be sampled again. */
export function tokensOf(sample: Sample): number {
  return sample.kind === 'tokens' ? sample.segment.ids.length : textTokens(sample)
}

function textTokens({ usage }: TextSample): number {
  return usage.sampled
}
