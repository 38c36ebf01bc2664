import type { ProvenanceSpan } from './provenance.ts'
import {
  bytesOf,
  floatsOf,
  intsOf,
  longBytes,
  longsOf,
  makeWireWriter,
  numberOf,
  rawBytes,
  readWire,
  textOf,
  type WireFields,
} from './wire.ts'

// Tinker's protobuf messages (package tinker_public of the published SDK, 0.36), as far as they are
// needed: one is written, two are read, into the shapes that the same answers have in JSON.

/** A tensor as Tinker's API has it. */
export interface TinkerTensor {
  readonly data: Int32Array | Float32Array
  readonly dtype: 'int64' | 'float32'
  readonly shape: readonly number[]
}

/** What one sequence is trained on. */
export interface TinkerDatum {
  readonly model_input: {
    readonly chunks: readonly { readonly type: 'encoded_text'; readonly tokens: Int32Array }[]
  }
  readonly loss_fn_inputs: Readonly<Record<string, TinkerTensor>>
  /** Where its inputs and its targets come from; goes as protobuf only, as in the SDK. */
  readonly spans?: {
    readonly input: readonly ProvenanceSpan[]
    readonly targets: readonly ProvenanceSpan[]
  }
}

/** A pass over data. */
export interface ForwardBackward {
  readonly modelId: string
  readonly seqId: number
  readonly data: readonly TinkerDatum[]
  readonly loss: string
  readonly config?: Readonly<Record<string, number | string>>
  /** Only log-probabilities and the loss are wanted. */
  readonly forwardOnly?: boolean
}

/** What a pass gave: tensors by name for each datum, and the server's metrics. */
export interface ForwardBackwardOutput {
  readonly outputs: readonly Readonly<Record<string, readonly number[]>>[]
  readonly metrics: Readonly<Record<string, number>>
}

const dtypes = { float32: 1, int64: 2 } as const

/** The body of `forward_backward` as protobuf. */
export function writeForwardBackward(pass: ForwardBackward): Uint8Array {
  const writer = makeWireWriter().bytes(1, pass.modelId).integer(2, pass.seqId)
  for (const datum of pass.data) writer.bytes(3, writeDatum(datum))
  writer.bytes(4, pass.loss)
  const config = Object.entries(pass.config ?? {})
  for (const [name, value] of config) {
    if (typeof value === 'number')
      writer.bytes(5, makeWireWriter().bytes(1, name).double(2, value).finish())
  }
  if (pass.forwardOnly) writer.integer(6, 1)
  for (const [name, value] of config) {
    const either =
      typeof value === 'number'
        ? makeWireWriter().double(1, value)
        : makeWireWriter().bytes(2, value)
    writer.bytes(7, makeWireWriter().bytes(1, name).bytes(2, either.finish()).finish())
  }
  return writer.finish()
}

function writeDatum({ model_input, loss_fn_inputs, spans }: TinkerDatum): Uint8Array {
  const writer = makeWireWriter()
  for (const { tokens } of model_input.chunks) {
    const text = makeWireWriter().bytes(1, rawBytes(tokens)).finish()
    writer.bytes(1, makeWireWriter().bytes(1, text).finish())
  }
  for (const [name, tensor] of Object.entries(loss_fn_inputs)) {
    const entry = makeWireWriter().bytes(1, name).bytes(2, writeTensor(tensor))
    writer.bytes(2, entry.finish())
  }
  for (const span of spans?.input ?? []) writer.bytes(3, writeSpan(span))
  for (const span of spans?.targets ?? []) writer.bytes(4, writeSpan(span))
  return writer.finish()
}

function writeSpan({ kind, sequence, offset, length }: ProvenanceSpan): Uint8Array {
  const writer = makeWireWriter().bytes(1, sequence)
  // Numbers of 0 are left out, as the SDK's own classes do.
  if (offset > 0) writer.integer(2, offset)
  if (length > 0) writer.integer(3, length)
  return makeWireWriter()
    .bytes(kind === 'prompt' ? 1 : 2, writer.finish())
    .finish()
}

function writeTensor({ data, dtype, shape }: TinkerTensor): Uint8Array {
  const dense = dtype === 'int64' ? longBytes(data) : rawBytes(data)
  const writer = makeWireWriter().bytes(1, dense).integer(3, dtypes[dtype])
  return writer.packed(4, shape).finish()
}

/** The body of a forward-backward request as JSON. */
export function forwardBackwardJson(pass: ForwardBackward): object {
  const { modelId, seqId, data, loss, config, forwardOnly } = pass
  const input = {
    data: data.map(datumJson),
    loss_fn: loss,
    ...(config && { loss_fn_config: config }),
  }
  return {
    model_id: modelId,
    seq_id: seqId,
    ...(forwardOnly ? { forward_input: input } : { forward_backward_input: input }),
  }
}

function datumJson({ model_input, loss_fn_inputs }: TinkerDatum): object {
  return {
    model_input: {
      chunks: model_input.chunks.map(({ type, tokens }) => ({ type, tokens: Array.from(tokens) })),
    },
    loss_fn_inputs: Object.fromEntries(
      Object.entries(loss_fn_inputs).map(([name, { data, dtype, shape }]) => [
        name,
        { data: Array.from(data), dtype, shape },
      ]),
    ),
  }
}

/** What `forward_backward` gave, from protobuf. */
export function readForwardBackward(bytes: Uint8Array): ForwardBackwardOutput {
  const fields = readWire(bytes)
  const metrics: Record<string, number> = {}
  for (const entry of bytesOf(fields, 3).map(readWire))
    metrics[textOf(entry, 1)] = numberOf(entry, 2)
  return { outputs: bytesOf(fields, 2).map(readWire).flatMap(readRecord), metrics }
}

/** A record holds one tensor per name for all its data, and the byte where each datum's part begins. */
function readRecord(record: WireFields): readonly Record<string, readonly number[]>[] {
  const tensors = bytesOf(record, 2).map(readWire).map(readTensor)
  const count = numberOf(record, 3)
  // A large count costs a server no bytes, so it is bounded by what was actually sent.
  const begun = Math.max(1, ...tensors.map(({ offsets }) => offsets.length))
  if (!Number.isInteger(count) || count < 0 || count > begun) {
    throw new Error(`protobuf: a record of ${count} data tells where ${begun} begin`)
  }
  const outputs = Array.from({ length: count }, () => ({}) as Record<string, number[]>)
  for (const { name, tensor, data, offsets } of tensors) {
    for (const [datum, output] of outputs.entries()) {
      const own = data.subarray(offsets[datum] ?? 0, offsets[datum + 1] ?? data.length)
      output[name] = readNumbers(own, numberOf(tensor, 3))
    }
  }
  return outputs
}

function readTensor(entry: WireFields) {
  const tensor = readWire(bytesOf(entry, 2)[0] ?? new Uint8Array())
  return {
    name: textOf(entry, 1),
    tensor,
    data: bytesOf(tensor, 1)[0] ?? new Uint8Array(),
    offsets: longsOf(bytesOf(tensor, 2)[0] ?? new Uint8Array()),
  }
}

function readNumbers(bytes: Uint8Array, dtype: number): number[] {
  const read = numberReaders[dtype]
  if (!read) throw new Error(`protobuf: tensors of type ${dtype} are not read`)
  return Array.from(read(bytes))
}

const numberReaders: Readonly<Record<number, (bytes: Uint8Array) => ArrayLike<number>>> = {
  1: floatsOf,
  2: longsOf,
  3: intsOf,
  // bfloat16 is the upper half of a float32.
  4: bytes => {
    const wide = new Uint8Array(bytes.length * 2)
    for (let at = 0; at < bytes.length; at += 2) wide.set(bytes.subarray(at, at + 2), at * 2 + 2)
    return floatsOf(wide)
  },
}

/** What `forward_backward` gave, from JSON. */
export function forwardBackwardOf(
  answer: Readonly<Record<string, unknown>>,
): ForwardBackwardOutput {
  const { metrics, loss_fn_outputs } = answer
  const outputs = Array.isArray(loss_fn_outputs) ? (loss_fn_outputs as unknown[]) : []
  return {
    outputs: outputs.map(output => {
      const tensors = Object.entries((output ?? {}) as Record<string, { data?: unknown }>)
      return Object.fromEntries(
        tensors.map(([name, tensor]) => [
          name,
          Array.isArray(tensor?.data) ? (tensor.data as number[]) : [],
        ]),
      )
    }),
    metrics: Object.fromEntries(
      Object.entries((metrics ?? {}) as object).filter(([, value]) => typeof value === 'number'),
    ),
  }
}

/** What `asample` gave. */
export interface SampleOutput {
  readonly sequences: readonly {
    readonly tokens: Int32Array
    readonly logprobs: Float32Array | null
    readonly finish: 'stop' | 'length'
  }[]
  /** NaN if there is none, as for the first token; undefined if they were not asked for. */
  readonly promptLogprobs?: Float32Array
  readonly cached?: number
}

/** What `asample` gave, from protobuf. */
export function readSample(bytes: Uint8Array): SampleOutput {
  const fields = readWire(bytes)
  const [prompt] = bytesOf(fields, 2)
  const cached = numberOf(fields, 4)
  return {
    sequences: bytesOf(fields, 1).map(sequence => {
      const own = readWire(sequence)
      const [given] = bytesOf(own, 3)
      const tokens = intsOf(bytesOf(own, 2)[0] ?? new Uint8Array())
      const logprobs = given ? floatsOf(given) : null
      checkSequence(tokens, logprobs)
      return {
        tokens,
        logprobs,
        finish: numberOf(own, 1) === 1 ? 'length' : 'stop',
      }
    }),
    ...(prompt && prompt.length > 0 && { promptLogprobs: floatsOf(prompt) }),
    ...(cached > 0 && { cached }),
  }
}

const isId = (value: unknown): boolean => typeof value === 'number' && value >>> 0 === value

const noTokens = 'asample gave a sequence without tokens'

/** Checks that tokens are ids and that each has a log-probability, in JSON and protobuf alike. */
function checkSequence(tokens: ArrayLike<unknown>, logprobs: ArrayLike<unknown> | null): void {
  if (!Array.from(tokens).every(isId)) throw new Error(noTokens)
  if (logprobs === null) return
  const areNumbers = Array.from(logprobs).every(value => typeof value === 'number')
  if (areNumbers && logprobs.length === tokens.length) return
  throw new Error('asample gave log-probabilities that are not one number for each token')
}

/** What `asample` gave, from JSON. */
export function sampleOf(answer: Readonly<Record<string, unknown>>): SampleOutput {
  const { sequences, prompt_logprobs: prompt } = answer
  const all = Array.isArray(sequences) ? (sequences as unknown[]) : []
  return {
    sequences: all.map(sequence => {
      const { tokens, logprobs, stop_reason } = (sequence ?? {}) as Record<string, unknown>
      if (!Array.isArray(tokens)) throw new Error(noTokens)
      checkSequence(tokens, Array.isArray(logprobs) ? logprobs : null)
      return {
        tokens: Int32Array.from(tokens as number[]),
        logprobs: Array.isArray(logprobs) ? Float32Array.from(logprobs as number[]) : null,
        finish: stop_reason === 'length' ? 'length' : 'stop',
      }
    }),
    ...(Array.isArray(prompt) && {
      promptLogprobs: Float32Array.from(prompt as (number | null)[], value => value ?? Number.NaN),
    }),
  }
}
