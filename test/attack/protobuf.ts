import { readForwardBackward, readSample } from '../../src/engine/policies/tinker/messages.ts'
import {
  longBytes,
  makeWireWriter,
  rawBytes,
  readWire,
} from '../../src/engine/policies/tinker/wire.ts'
import { type Attack, damagedBytes, hold, oneOf } from './attack.ts'

/** A sample of two tokens, as Tinker answers. */
function sampleBytes(): Uint8Array {
  const sequence = makeWireWriter()
  sequence.integer(1, 1)
  sequence.bytes(2, rawBytes(Int32Array.of(5, 6)))
  sequence.bytes(3, rawBytes(Float32Array.of(-1, -0.5)))
  const answer = makeWireWriter()
  answer.bytes(1, sequence.finish())
  answer.bytes(2, rawBytes(Float32Array.of(Number.NaN, -1)))
  answer.integer(4, 1)
  return answer.finish()
}

/** What a forward pass gave for two data. */
function passBytes(): Uint8Array {
  const tensor = makeWireWriter()
  tensor.bytes(1, rawBytes(Float32Array.of(-1, -2, -3)))
  tensor.bytes(2, longBytes([0, 4]))
  tensor.integer(3, 1)
  const entry = makeWireWriter()
  entry.bytes(1, Buffer.from('logprobs'))
  entry.bytes(2, tensor.finish())
  const record = makeWireWriter()
  record.bytes(2, entry.finish())
  record.integer(3, 2)
  const answer = makeWireWriter()
  answer.bytes(2, record.finish())
  return answer.finish()
}

/** Protobuf that is damaged anywhere: read as tokens with their numbers, or refused in words. */
export const protobufAnswers: Attack = {
  name: 'protobuf answers',
  promise: 'O1',
  share: 40,
  async open() {
    const kinds = [
      [Buffer.from(sampleBytes()), readSample],
      [Buffer.from(passBytes()), readForwardBackward],
      [Buffer.from(passBytes()), readWire],
    ] as const
    return draw => {
      const [right, read] = oneOf(kinds, draw)
      let bytes: Buffer = right
      for (let count = 1 + Math.floor(draw() * 3); count > 0 && bytes.length > 0; count--) {
        bytes = damagedBytes(bytes, draw)
      }
      try {
        const answer = read(bytes)
        if (!('sequences' in answer)) return
        for (const { tokens, logprobs } of answer.sequences) {
          hold(
            tokens.every(id => id >= 0),
            `a token that is no id of ${bytes.toString('hex')}`,
          )
          hold(!logprobs || logprobs.length === tokens.length, bytes.toString('hex'))
        }
      } catch (cause) {
        const { message } = cause as Error
        const isTold = /^(protobuf|asample)/.test(message)
        hold(isTold, `${bytes.toString('hex')}: ${String(cause)}`)
      }
    }
  },
}
