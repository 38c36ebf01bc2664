import type { ExpertNumbers, RoutedExperts } from '../../../base/core/experts.ts'
import { asArray, asObject, asText, shown, wrong } from '../transport/reading.ts'

/** How many layers of a model route tokens, and to how many experts each. */
export interface ExpertShape {
  readonly layers: number
  readonly top: number
}

/** Reads `48x8`: layers and experts per token. */
export function readExpertShape(text: string): ExpertShape | undefined {
  const [, layers, top] = /^([1-9]\d{0,3})x([1-9]\d{0,2})$/.exec(text) ?? []
  return layers && top ? { layers: Number(layers), top: Number(top) } : undefined
}

/** What a sample's experts must match. */
export interface ExpertPlace {
  readonly where: string
  readonly prompt: number
  readonly sampled: number
  /** From which token of the prompt on they were asked for. */
  readonly from: number
}

/**
 * Reads the experts of a sample: base64 of 32-bit numbers (SGLang), of a NumPy file or of bytes with
 * their shape (vLLM). They end at the last token but one; those that were not asked for are dropped.
 */
export function readExperts(
  value: unknown,
  { layers, top }: ExpertShape,
  { where, prompt, sampled, from }: ExpertPlace,
): RoutedExperts | undefined {
  if (sampled === 0) return undefined
  if (value === undefined || value === null) {
    throw wrong(
      where,
      'the answer has no routed_experts: start the server with --enable-return-routed-experts, or leave experts= out',
    )
  }
  const numbers = numbersOf(value, where)
  const width = layers * top
  const rows = numbers.length / width
  const wanted = prompt - from + sampled - 1
  if (!Number.isInteger(rows) || rows < wanted || rows > prompt + sampled - 1) {
    throw wrong(
      where,
      `routed_experts has ${numbers.length} numbers, which are not ${layers} layers × ${top} experts of ${wanted} tokens`,
    )
  }
  const own = numbers.subarray(numbers.length - wanted * width)
  return { layers, top, before: prompt - from, data: narrow(own, where) }
}

type Numbers = Int32Array | Uint8Array | Uint16Array | Int16Array

function numbersOf(value: unknown, where: string): Numbers {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value, 'base64')
    return bytes.subarray(1, 6).toString('latin1') === 'NUMPY'
      ? numpy(bytes, where)
      : typed(bytes, '<i4', where)
  }
  const fields = asObject(value, where, 'routed_experts')
  asArray(fields.shape, where, 'routed_experts.shape')
  const kind = kinds[asText(fields.dtype, where, 'routed_experts.dtype')]
  if (!kind) throw wrong(where, `routed_experts.dtype is ${shown(fields.dtype)}`)
  return typed(
    Buffer.from(asText(fields.data, where, 'routed_experts.data'), 'base64'),
    kind,
    where,
  )
}

const kinds: Readonly<Record<string, string>> = {
  int32: '<i4',
  uint8: '|u1',
  uint16: '<u2',
  int16: '<i2',
}

/** A NumPy file: a header in Python's words, then the numbers row by row. */
function numpy(bytes: Buffer, where: string): Numbers {
  const isLong = bytes[6]! > 1
  const start = isLong ? 12 + bytes.readUInt32LE(8) : 10 + bytes.readUInt16LE(8)
  const header = bytes.subarray(isLong ? 12 : 10, start).toString('latin1')
  const kind = /'descr': '([^']+)'/.exec(header)?.[1]
  if (kind === undefined || !header.includes("'fortran_order': False")) {
    throw wrong(where, `routed_experts is a NumPy file of another kind: ${shown(header.trim())}`)
  }
  return typed(bytes.subarray(start), kind, where)
}

function typed(bytes: Buffer, kind: string, where: string): Numbers {
  const copy = Uint8Array.from(bytes).buffer
  const size = Number(kind.at(-1))
  if (copy.byteLength % size !== 0) throw wrong(where, `routed_experts ends within a number`)
  if (kind === '|u1') return new Uint8Array(copy)
  if (kind === '<u2') return new Uint16Array(copy)
  if (kind === '<i2') return new Int16Array(copy)
  if (kind === '<i4') return new Int32Array(copy)
  throw wrong(where, `routed_experts has numbers of kind ${shown(kind)}`)
}

/** As few bytes as the numbers need. */
function narrow(numbers: Numbers, where: string): ExpertNumbers {
  let most = 0
  for (const number of numbers) {
    if (number < 0 || number > 65535) throw wrong(where, `routed_experts names expert ${number}`)
    most = Math.max(most, number)
  }
  return most < 256 ? Uint8Array.from(numbers) : Uint16Array.from(numbers)
}
