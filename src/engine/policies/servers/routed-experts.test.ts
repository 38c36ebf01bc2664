import { describe, expect, it } from 'vitest'
import { readAddress } from '../policy-uri.ts'
import { packAnswer, unpackAnswer } from './answer-reading.ts'
import { readExperts } from './routed-experts.ts'
import { readGenerated } from './sglang-answer.ts'
import { makeSampleFrames } from './sglang-request.ts'

const shape = { layers: 2, top: 2 }
/** Five tokens were read: a prompt of 4 and two sampled ones, the last of which nobody read. */
const numbers = Array.from({ length: 20 }, (_, at) => at * 3)
const place = { where: 'here', prompt: 4, sampled: 2, from: 0 }

/** A NumPy file as `numpy.save` writes it. */
function npy(descr: string, bytes: Buffer): string {
  const words = `{'descr': '${descr}', 'fortran_order': False, 'shape': (5, 2, 2), }`
  const header = Buffer.from(`${words.padEnd(117)}\n`)
  const size = Buffer.alloc(2)
  size.writeUInt16LE(header.length)
  return Buffer.concat([
    Buffer.from([0x93]),
    Buffer.from('NUMPY\u0001\u0000'),
    size,
    header,
    bytes,
  ]).toString('base64')
}

const int32 = Buffer.from(Int32Array.from(numbers).buffer)

describe('experts that servers tell', () => {
  it.each([
    ['32-bit numbers, as SGLang', int32.toString('base64')],
    ['a NumPy file, as vLLM', npy('<i4', int32)],
    ['a NumPy file of bytes', npy('|u1', Buffer.from(numbers))],
    [
      'bytes with their shape',
      { data: Buffer.from(numbers).toString('base64'), shape: [5, 2, 2], dtype: 'uint8' },
    ],
  ])('%s', (_, value) => {
    const data = Uint8Array.from(numbers)
    expect(readExperts(value, shape, place)).toEqual({ ...shape, before: 4, data })
    const tail = { ...shape, before: 1, data: data.subarray(12) }
    expect(readExperts(value, shape, { ...place, from: 3 })).toEqual(tail)
  })

  it('come with an answer from the thread that read it', () => {
    const meta = { finish_reason: { type: 'stop' }, output_token_logprobs: [[-1, 7, null]] }
    const answer = { meta_info: { ...meta, routed_experts: 'AAAA' } }
    const read = readGenerated(answer, 'here', 0)
    expect(unpackAnswer(structuredClone(packAnswer(read)))).toEqual(read)
    expect(read.experts).toBe('AAAA')
  })

  it('says what is wrong with them', () => {
    expect(() => readExperts(undefined, shape, place)).toThrow('--enable-return-routed-experts')
    expect(() => readExperts(int32.toString('base64'), { layers: 3, top: 2 }, place)).toThrow(
      '3 layers × 2 experts of 5 tokens',
    )
    const negative = Buffer.from(Int32Array.from(numbers, () => -1).buffer).toString('base64')
    expect(() => readExperts(negative, shape, place)).toThrow('expert -1')
    expect(readExperts(undefined, shape, { ...place, sampled: 0 })).toBeUndefined()
  })

  it('are asked for by the address, from the first token that is not known', () => {
    expect(readAddress('sglang:http://x?experts=48x8').parameters).toEqual({
      experts: { layers: 48, top: 8 },
    })
    expect(() => readAddress('vllm:http://x?experts=yes')).toThrow('as in 48x8')
    const request = {
      maxTokens: 4,
      seed: 1,
      sampling: { temperature: 1, topP: 1, topK: 0, minP: 0 },
      stopIds: [],
      stopStrings: [],
    }
    const frame = { rid: 'r', stream: false, adapter: undefined }
    const tailOf = (more: object) =>
      makeSampleFrames()({ ...request, ...more } as never, frame).tail
    expect(tailOf({ expertsFrom: 7 })).toContain(
      '"return_routed_experts":true,"routed_experts_start_len":7,',
    )
    expect(tailOf({})).not.toContain('experts')
  })
})
