import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { type FakeTinkerOptions, openFakeTinker } from '../../../../test/servers/tinker-fake.ts'
import { expectTokens, sampleRequest } from '../../../base/core/conformance/policy.conformance.ts'
import { openTinkerApi } from './api.ts'
import { readForwardBackward, readSample, writeForwardBackward } from './messages.ts'
import { createModel, publish } from './model.ts'
import { makePasses } from './passes.ts'
import { cutSpans, makeProvenance } from './provenance.ts'
import { tinkerServers } from './server-kind.ts'
import { openTinkerSession } from './session.ts'
import { makeWireWriter } from './wire.ts'

const call = { signal: AbortSignal.timeout(50_000) }
const quick = { pauseMs: 1 }
const ids = (...values: number[]) => Int32Array.from(values)
const tensor = (...values: number[]) => ({
  data: Float32Array.from(values),
  dtype: 'float32' as const,
  shape: [values.length],
})
const datum = {
  model_input: { chunks: [{ type: 'encoded_text' as const, tokens: ids(1, 2) }] },
  loss_fn_inputs: {
    target_tokens: { data: ids(2, 300), dtype: 'int64' as const, shape: [2] },
    logprobs: tensor(0, -0.5),
    advantages: tensor(0, 2),
  },
}
const pass = { modelId: 'M0', seqId: 3, data: [datum], loss: 'ppo', config: { clip: 0.25 } }

async function scene(options: FakeTinkerOptions = {}) {
  const server = await openFakeTinker(options)
  const session = await openTinkerSession(server.url, quick)
  return {
    server,
    session,
    async [Symbol.asyncDispose]() {
      await session[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

describe("Tinker's protobuf", () => {
  it('is what the official SDK 0.36.0 writes and reads', () => {
    // python -c "from tinker.proto import tinker_public_pb2 as pb; …SerializeToString().hex()"
    expect(Buffer.from(writeForwardBackward(pass)).toString('hex')).toBe(sdkRequest)
    expect(readForwardBackward(Buffer.from(sdkOutput, 'hex'))).toEqual({
      outputs: [{ logprobs: [-0.5, -0.25] }, { logprobs: [-1] }],
      metrics: { 'loss:sum': 1.5 },
    })
    const { sequences, promptLogprobs } = readSample(Buffer.from(sdkSample, 'hex'))
    expect(sequences).toEqual([
      { tokens: ids(7, 300), logprobs: Float32Array.of(-0.5, -1), finish: 'length' },
    ])
    expect([...promptLogprobs!]).toEqual([Number.NaN, -2])
  })

  it('says where tokens come from as the SDK does', () => {
    const span = (kind: 'prompt' | 'sampled', length: number) =>
      ({ kind, sequence: 'a', offset: 0, length }) as const
    const { target_tokens } = datum.loss_fn_inputs
    const told = {
      model_input: datum.model_input,
      loss_fn_inputs: { target_tokens },
      spans: { input: [span('prompt', 1), span('sampled', 1)], targets: [span('sampled', 2)] },
    }
    const bytes = writeForwardBackward({ ...pass, data: [told], loss: 'cross_entropy', config: {} })
    expect(Buffer.from(bytes).toString('hex')).toBe(sdkSpans)
  })

  it('that is cut off or not protobuf at all is refused', () => {
    const whole = Buffer.from(sdkOutput, 'hex')
    for (let size = 1; size < whole.length; size++) {
      try {
        readForwardBackward(whole.subarray(0, size))
      } catch (error) {
        expect((error as Error).message).toMatch(/^protobuf: /)
      }
    }
    expect(() => readForwardBackward(Buffer.from('{"a": 1}'))).toThrow(/protobuf/)
  })
})

describe('passes', () => {
  it.each([
    ['JSON', 422],
    ['JSON', 500],
    ['protobuf', 415],
  ])(
    'are sent as %s where the server refuses the other with %i, and go that way from then on',
    async (way, code) => {
      const refused = way === 'JSON' ? 'protobuf' : 'json'
      await using on = await scene({
        instead: ({ path, type }) =>
          path === 'forward_backward' && type.includes(refused) ? { code } : undefined,
      })
      const passes = makePasses(on.session)
      const { outputs, metrics } = await passes.run(pass, call)
      expect(outputs[0]!.logprobs).toEqual([0, -0.5])
      expect(metrics).toEqual({ 'loss:sum': 2 })
      await passes.run(pass, call)
      const types = on.server.to('forward_backward').map(({ type }) => type)
      const json = ['application/x-protobuf', 'application/json', 'application/json']
      expect(types).toEqual(way === 'JSON' ? json : Array(2).fill('application/x-protobuf'))
      expect(on.server.to('forward_backward').at(-1)!.body).toMatchObject({
        model_id: 'M0',
        seq_id: 3,
        forward_backward_input: { loss_fn: 'ppo', loss_fn_config: { clip: 0.25 } },
      })
    },
  )

  it('that a protobuf server refuses for another reason say that reason', async () => {
    await using on = await scene({
      instead: ({ path, type }) => {
        if (path !== 'forward_backward') return undefined
        if (type.includes('json')) return { code: 415, body: { detail: 'expected protobuf' } }
        return { code: 422, body: { detail: 'no such loss' } }
      },
    })
    await expect(makePasses(on.session).run(pass, call)).rejects.toThrow(/422: no such loss/)
  })
})

describe('waiting for a result', () => {
  it.each([408, 429, 500, 503])('goes on after a %i', async code => {
    const instead = flaky('retrieve_future', code, 2)
    await using on = await scene({ instead })
    expectTokens(await on.session.policy.sample(sampleRequest(), call))
    expect(on.server.to('retrieve_future')).toHaveLength(3)
    expect(on.server.to('asample')).toHaveLength(1)
  })

  it('sends again what the server lost, which it says with 410', async () => {
    await using on = await scene({ instead: flaky('retrieve_future', 410, 1) })
    expectTokens(await on.session.policy.sample(sampleRequest(), call))
    expect(on.server.to('asample').map(({ body }) => body.seq_id)).toEqual([0, 1])
  })

  it('takes a plain 400 three times for a proxy, and a fourth for the answer', async () => {
    await using on = await scene({ instead: flaky('retrieve_future', 400, 9) })
    await expect(on.session.policy.sample(sampleRequest(), call)).rejects.toThrow(
      /asample answered 400: refused/,
    )
    expect(on.server.to('retrieve_future')).toHaveLength(4)
  })

  it('ends at once where the work failed, or the answer is final', async () => {
    const failed = { code: 200, body: { error: 'no memory', category: 'server' } }
    const instead = ({ path }: { path: string }) =>
      path === 'retrieve_future' ? failed : undefined
    await using on = await scene({ instead })
    await expect(on.session.policy.sample(sampleRequest(), call)).rejects.toThrow(/no memory/)
    expect(on.server.to('retrieve_future')).toHaveLength(1)
    await using off = await scene({ instead: flaky('retrieve_future', 422, 9) })
    await expect(off.session.policy.sample(sampleRequest(), call)).rejects.toThrow(/answered 422/)
  })

  it('tells the server when nobody waits any more', async () => {
    const stop = new AbortController()
    await using on = await scene({
      instead: ({ path }) => {
        if (path !== 'retrieve_future') return undefined
        stop.abort()
        return { code: 200, body: { type: 'try_again' } }
      },
    })
    await expect(on.session.policy.sample(sampleRequest(), stop)).rejects.toThrow()
    await expect
      .poll(() => on.server.to('cancel_future').map(({ body }) => body))
      .toEqual([{ request_id: '1' }])
  })
})

/** Fails the first requests of a path. */
function flaky(
  path: string,
  code: number,
  times: number,
): NonNullable<FakeTinkerOptions['instead']> {
  return (one, before) =>
    one.path === path && before.filter(each => each.path === path).length < times
      ? { code }
      : undefined
}

describe('sampling', () => {
  it('stops at ids, at texts and then at ids too, or where the model ends by itself', async () => {
    await using on = await scene()
    const { policy } = on.session
    await policy.sample(sampleRequest({ stopIds: [3], stopStrings: [] }), call)
    await policy.sample(sampleRequest({ stopIds: [], stopStrings: [] }), call)
    const cut = await policy.sample(sampleRequest({ stopIds: [6], stopStrings: ['###'] }), call)
    const stops = on.server.to('asample').map(({ body }) => body.sampling_params.stop)
    expect(stops).toEqual([[3], undefined, ['###']])
    expect([...expectTokens(cut).segment.ids]).toEqual([5, 6])
    expect(cut.finish).toEqual({ kind: 'stop' })
  })

  it('waits with all samples when the server has had enough', async () => {
    await using on = await scene({ instead: flaky('asample', 429, 2) })
    const { policy } = on.session
    await Promise.all([1, 2, 3].map(() => policy.sample(sampleRequest(), call)))
    expect(on.server.to('asample')).toHaveLength(5)
    expect(on.server.to('asample')[0]!.headers['x-tinker-sampling-backpressure']).toBe('1')
  })

  it('listens to a shared signal once, however many samples and scores share it', async () => {
    await using on = await scene({ instead: flaky('retrieve_future', 429, 40) })
    const { signal } = new AbortController()
    const warned: string[] = []
    const hear = ({ name }: Error): void => void warned.push(name)
    process.on('warning', hear)
    const { policy } = on.session
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        await policy.sample(sampleRequest(), { signal })
        await policy.score!(ids(4, 5), 1, { temperature: 1 }, { signal })
      }),
    )
    process.off('warning', hear)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    expect(warned).toEqual([])
  })

  it('draws groups in one request, and scores by prompt_logprobs', async () => {
    await using on = await scene()
    const { policy } = on.session
    const drawn = await policy.sampleSeveral!(sampleRequest(), [9, 8, 7], call)
    expect(drawn.map(each => expectTokens(each).segment.ids[0])).toEqual([5, 6, 7])
    const scores = await policy.score!(ids(4, 5, 6, 7), 2, { temperature: 1 }, call)
    expect([...scores.logprobs]).toEqual([-2, -3])
    expect(scores.basis).toBe('tempered')
    expect(on.server.to('asample').map(({ body }) => body.num_samples)).toEqual([3, 1])
  })

  it('numbers samplers with one counter, whatever they are made from', async () => {
    await using on = await scene()
    const { session } = on
    await session.policy.sample(sampleRequest(), call)
    const model = await createModel(session, { rank: 4, seed: 0, targets: ['mlp'] }, call)
    await session.sampleFrom(await publish(session, model, call), 1, call)
    await session.policy.sample(sampleRequest(), call)
    expect(on.server.to('create_sampling_session')[0]!.body.sampling_session_seq_id).toBe(0)
    expect(on.server.to('save_weights_for_sampler')[0]!.body).toMatchObject({
      sampling_session_seq_id: 1,
      seq_id: 1,
    })
    expect(on.server.to('create_model')[0]!.body.lora_config).toEqual({
      rank: 4,
      seed: 0,
      train_attn: false,
      train_mlp: true,
      train_unembed: false,
    })
    const asked = on.server.to('asample').map(({ body }) => [body.sampling_session_id, body.seq_id])
    expect(asked).toEqual([
      ['S-sample-0', 0],
      ['S-sample-1', 0],
    ])
  })

  it('comes from one fresh adapter where the base model is refused, which is given back', async () => {
    const on = await scene({
      instead: ({ path, body }) => {
        const isBase = path === 'retrieve_future' && Number(body.request_id) <= 3
        return isBase ? { code: 422, body: { detail: 'unknown model_id ""' } } : undefined
      },
    })
    // Three requests ask the base model at once, and none does afterwards.
    const drawn = [1, 2, 3].map(() => on.session.policy.sample(sampleRequest(), call))
    for (const each of await Promise.all(drawn)) expectTokens(each)
    expectTokens(await on.session.policy.sample(sampleRequest(), call))
    expect(on.server.to('create_model')).toHaveLength(1)
    const from = on.server.to('asample').map(({ body }) => body.sampling_session_id)
    expect(from.toSorted()).toEqual([
      ...Array(3).fill('S-sample-0'),
      ...Array(4).fill('S-sample-1'),
    ])
    await on.session[Symbol.asyncDispose]()
    expect(on.server.to('unload_model').map(({ body }) => body.model_id)).toEqual(['M0'])
    await on.server[Symbol.asyncDispose]()
  })
})

describe('where tokens come from', () => {
  const memory = makeProvenance()
  memory.keep()
  memory.remember(ids(1, 2), ids(3, 4), 'a')
  memory.remember(ids(1, 2, 3, 4, 5), ids(6, 7), 'b')

  it('is told for whole rows, forks inside a sample included', () => {
    const runs = [
      { start: 2, end: 4 },
      { start: 5, end: 6 },
    ]
    const spans = memory.spansOf(ids(1, 2, 3, 4, 5, 6), runs)
    expect(spans).toEqual([
      { kind: 'prompt', sequence: 'a', offset: 0, length: 2 },
      { kind: 'sampled', sequence: 'a', offset: 0, length: 2 },
      { kind: 'prompt', sequence: 'b', offset: 4, length: 1 },
      { kind: 'sampled', sequence: 'b', offset: 0, length: 1 },
    ])
    expect(cutSpans(spans!, 1, 5).map(({ offset, length }) => [offset, length])).toEqual([
      [1, 1],
      [0, 2],
      [4, 1],
    ])
  })

  it('is not made up: a row with a token of no sequence says nothing', () => {
    expect(memory.spansOf(ids(1, 2, 9), [{ start: 2, end: 3 }])).toBeUndefined()
    expect(memory.spansOf(ids(1, 2, 3, 8), [{ start: 2, end: 3 }])).toBeUndefined()
  })
})

describe('a session', () => {
  it.each([
    ['skyrl', { info: { title: 'Tinker API Mock' } }],
    ['tuft', { info: { title: 'TuFT' } }],
    ['twinkle', { info: { title: 'FastAPI' }, paths: { '/twinkle/create': {} } }],
    ['tinker', undefined],
  ] as const)('finds out that it talks to %s', async (name, openapi) => {
    await using on = await scene({ openapi })
    expect(on.session.kind).toBe(tinkerServers[name])
  })

  it('compresses where the server asks for it, and says when it is over', async () => {
    const on = await scene({ config: { proto_compress_fwdbwd: true } })
    expect(on.session.zstd).toBe(true)
    await on.session[Symbol.asyncDispose]()
    expect(on.server.to('sessions/S/finish')).toHaveLength(1)
    await on.server[Symbol.asyncDispose]()
  })

  it('does not wait long for a server that is not there', async () => {
    const api = openTinkerApi('http://127.0.0.1:9', { retrySeconds: 0 })
    await expect(api.get('healthz', call)).rejects.toThrow(/ECONNREFUSED/)
  })
})

// The same three messages, serialised by the SDK's own protobuf classes.
const sdkRequest =
  '0a024d3010031a740a0c0a0a0a08010000000200000012280a0d7461726765745f746f6b656e7312170a100200' +
  '0000000000002c010000000000001802220102121b0a086c6f6770726f6273120f0a0800000000000000bf1801' +
  '220102121d0a0a616476616e7461676573120f0a0800000000000000401801220102220370706f2a0f0a04636c' +
  '697011000000000000d03f3a110a04636c6970120909000000000000d03f'
const sdkOutput =
  '0a0b41727261795265636f7264123a12360a086c6f6770726f6273122a0a0c000000bf000080be000080bf1218' +
  '000000000000000008000000000000000c00000000000000180118021a130a086c6f73733a73756d1100000000' +
  '0000f83f'
const sdkSpans =
  '0a024d3010031a530a0c0a0a0a08010000000200000012280a0d7461726765745f746f6b656e7312170a100200' +
  '0000000000002c0100000000000018022201021a070a050a016118011a0712050a01611801220712050a016118' +
  '02220d63726f73735f656e74726f7079'
const sdkSample = '0a1608011208070000002c0100001a08000000bf000080bf12080000c07f000000c0'

it('[O1] a record that names more data than it holds is refused before room is made for them', () => {
  const record = makeWireWriter()
    .integer(3, 2 ** 40)
    .finish()
  const answer = makeWireWriter().bytes(2, record).finish()
  expect(() => readForwardBackward(answer)).toThrow('a record of 1099511627776 data')
})
