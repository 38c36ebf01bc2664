import { createHash } from 'node:crypto'
import type { AssistantMessage } from '@espalier/text'
import type { RoutedExperts } from '../../base/core/experts.ts'
import type {
  Finish,
  PolicyCapabilities,
  PolicyDescription,
  Sample,
  SampleKey,
  SampleUsage,
  Scores,
} from '../../base/core/policy.ts'
import { type LogprobBasis, sampled, type VersionRange } from '../../base/core/segment.ts'
import { asArray, asIds, asObject, type Fields, shown, wrong } from './transport/reading.ts'

/** The first line of a cassette: what was recorded. */
export interface CassetteHeader {
  readonly espalier: 'cassette'
  readonly format: 1
  readonly policy: string
  readonly capabilities: PolicyCapabilities
}

/** Names one recorded sample: its key, and how many of that key came before it. */
export function sampleName({ task, member, branch, turn }: SampleKey, nth: number): string {
  return JSON.stringify([task, member, branch, turn, nth])
}

/** A short name for tokens, to see whether a replay still asks what was recorded. */
export function digestOf(ids: Int32Array): string {
  const bytes = Buffer.from(ids.buffer as ArrayBuffer, ids.byteOffset, ids.byteLength)
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16)
}

/** Names one recorded scoring. */
export function scoreName(ids: Int32Array, from: number, temperature: number): string {
  return JSON.stringify([digestOf(ids), from, temperature])
}

/** A recorded error, so that a replay fails with the same message. */
export interface RecordedError {
  readonly name: string
  readonly message: string
}

/** The line of a sample. Numbers are written so that they read back as the same 32-bit floats. */
export function sampleLine(name: string, prompt: string, sample: Sample): string {
  const { finish, usage } = sample
  const common = `{"sample":${name},"prompt":"${prompt}","finish":${JSON.stringify(finish)},"usage":${JSON.stringify(usage)}`
  if (sample.kind === 'text') {
    const { version, message } = sample
    return `${common},"version":${rangeText(version)},"message":${JSON.stringify(message)}}`
  }
  const { ids, logprobs, version, basis, entropies, top, experts } = sample.segment
  const extra = [
    entropies ? `,"entropies":${floatsText(entropies)}` : '',
    top
      ? `,"top":{"width":${top.width},"ids":[${top.ids.join(',')}],"logprobs":${floatsText(top.logprobs)}}`
      : '',
    experts ? `,"experts":${expertsText(experts)}` : '',
  ].join('')
  const numbers = logprobs === null ? 'null' : floatsText(logprobs)
  return `${common},"version":${rangeText(version)},"basis":"${basis}","ids":[${ids.join(',')}],"logprobs":${numbers}${extra}}`
}

/** The line of a sample that failed. */
export function errorLine(name: string, prompt: string, error: RecordedError): string {
  const { name: kind, message } = error
  return `{"sample":${name},"prompt":"${prompt}","error":${JSON.stringify({ name: kind, message })}}`
}

/** The line of a scoring. */
export function scoreLine(name: string, { logprobs, basis, version }: Scores): string {
  return `{"score":${name},"version":${rangeText(version)},"basis":"${basis}","logprobs":${floatsText(logprobs)}}`
}

/** The line of a server's description. */
export function describeLine(description: PolicyDescription): string {
  return `{"describe":${JSON.stringify(description)}}`
}

function rangeText({ from, to }: VersionRange): string {
  return `[${from},${to}]`
}

/** Nine digits tell all 32-bit floats apart; -0 keeps its sign, -Infinity and NaN become null. */
function floatsText(values: Float32Array): string {
  const texts = Array.from(values, value => {
    if (value === 0) return Object.is(value, -0) ? '-0' : '0'
    return Number.isFinite(value) ? String(Number(value.toPrecision(9))) : 'null'
  })
  return `[${texts.join(',')}]`
}

/** A recorded sample, or how it failed. */
export interface RecordedSample {
  readonly prompt: string
  readonly sample: Sample | undefined
  readonly error: RecordedError | undefined
}

/** Reads the line of a sample. */
export function readSample(fields: Fields, where: string): RecordedSample {
  const prompt = String(fields.prompt)
  if (fields.error !== undefined) {
    const { name, message } = asObject(fields.error, where, 'error')
    return { prompt, sample: undefined, error: { name: String(name), message: String(message) } }
  }
  const finish = asObject(fields.finish, where, 'finish') as unknown as Finish
  const usage = asObject(fields.usage, where, 'usage') as unknown as SampleUsage
  const version = readRange(fields.version, where)
  if (fields.message !== undefined) {
    const message = asObject(fields.message, where, 'message') as unknown as AssistantMessage
    return { prompt, sample: { kind: 'text', message, version, finish, usage }, error: undefined }
  }
  const segment = readSegment(fields, version, where)
  return { prompt, sample: { kind: 'tokens', segment, finish, usage }, error: undefined }
}

function readSegment(fields: Fields, version: VersionRange, where: string) {
  const { entropies, top, experts } = fields
  return sampled({
    ids: asIds(fields.ids, where, 'ids'),
    logprobs:
      fields.logprobs === null ? null : readFloats(fields.logprobs, where, 'logprobs', Number.NaN),
    basis: readBasis(fields.basis, where),
    version,
    ...(entropies === undefined ? {} : { entropies: readFloats(entropies, where, 'entropies') }),
    ...(top === undefined ? {} : { top: readTop(asObject(top, where, 'top'), where) }),
    ...(experts === undefined
      ? {}
      : { experts: readKeptExperts(asObject(experts, where, 'experts'), where) }),
  })
}

function expertsText({ layers, top, before, data }: RoutedExperts): string {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  const size = data.BYTES_PER_ELEMENT
  return JSON.stringify({ layers, top, before, size, data: bytes.toString('base64') })
}

function readKeptExperts(
  { layers, top, before, size, data }: Fields,
  where: string,
): RoutedExperts {
  if (typeof data !== 'string')
    throw wrong(where, `experts.data must be a text, got ${shown(data)}`)
  const bytes = Uint8Array.from(Buffer.from(data, 'base64'))
  const numbers = size === 1 ? bytes : new Uint16Array(bytes.buffer)
  return { layers: Number(layers), top: Number(top), before: Number(before), data: numbers }
}

function readTop({ width, ids, logprobs }: Fields, where: string) {
  return {
    width: Number(width),
    ids: asIds(ids, where, 'top.ids'),
    logprobs: readFloats(logprobs, where, 'top.logprobs'),
  }
}

/** Reads the line of a scoring. */
export function readScore(fields: Fields, where: string): Scores {
  return {
    logprobs: readFloats(fields.logprobs, where, 'logprobs'),
    basis: readBasis(fields.basis, where),
    version: readRange(fields.version, where),
  }
}

/** Null means −Infinity for a candidate, which cannot be drawn, and NaN for a sampled token, whose number is unknown. */
function readFloats(
  value: unknown,
  where: string,
  path: string,
  missing = -Infinity,
): Float32Array {
  return Float32Array.from(asArray(value, where, path), (each, index) => {
    if (each === null) return missing
    if (typeof each === 'number') return each
    throw wrong(where, `${path}[${index}] must be a number, got ${shown(each)}`)
  })
}

function readBasis(value: unknown, where: string): LogprobBasis {
  if (value === 'tempered' || value === 'raw' || value === 'renormalised') return value
  throw wrong(where, `basis must be tempered, raw or renormalised, got ${shown(value)}`)
}

function readRange(value: unknown, where: string): VersionRange {
  const [from, to] = asArray(value, where, 'version')
  if (typeof from === 'number' && typeof to === 'number') return { from, to }
  throw wrong(where, `version must be two numbers, got ${shown(value)}`)
}
