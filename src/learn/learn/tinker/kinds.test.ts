import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chainGroup } from '../../../../test/export-runs.ts'
import { type FakeTinkerOptions, openFakeTinker } from '../../../../test/servers/tinker-fake.ts'
import { openTinkerSession } from '../../../engine/policies/tinker/session.ts'
import { readTinkerUri, type TinkerTrainerOptions } from './options.ts'
import { openTinkerTrainer } from './trainer.ts'

const call = { signal: AbortSignal.timeout(50_000) }
const described = {
  skyrl: { info: { title: 'Tinker API Mock' } },
  twinkle: { paths: { '/twinkle/forward': {} } },
}

async function scene(options: FakeTinkerOptions, trainer: TinkerTrainerOptions = {}) {
  const server = await openFakeTinker(options)
  const session = await openTinkerSession(server.url, { pauseMs: 1 })
  try {
    return { server, session, trainer: await openTinkerTrainer(session, trainer) }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

const sum = (values: readonly number[]): number => values.reduce((whole, each) => whole + each, 0)

describe('a trainer knows its server', () => {
  it('samples from a fresh adapter from the start, and gives its place free at the end', async () => {
    const { server, trainer } = await scene({}, { rank: 8, targets: ['attention'] })
    await trainer.step([chainGroup([1, 0])], call)
    await trainer.publish!(call)
    // Nothing was learned since.
    await trainer.publish!(call)
    await trainer[Symbol.asyncDispose]()
    await using _ = server
    expect(server.to('save_weights_for_sampler').map(({ body }) => body.seq_id)).toEqual([1, 4])
    expect(server.to('create_model')[0]!.body.lora_config.rank).toBe(8)
    expect(server.to('optim_step')[0]!.body.adam_params).toMatchObject({ eps: 1e-12 })
    expect(server.to('unload_model')[0]!.body.model_id).toBe('M0')
  })

  it("sends SkyRL's JAX server weights, and multiplies in what it divides by", async () => {
    const { server, trainer } = await scene({ openapi: described.skyrl, metrics: {} })
    await using _ = server
    const { metrics } = await trainer.step([chainGroup([1, 0, 0.5])], call)
    // It samples from the adapter that it trains, so that sampling waits for the whole step.
    expect(trainer.publish).toBeUndefined()
    expect(server.to('save_weights_for_sampler')).toHaveLength(2)
    const [probe, own] = server.to('forward_backward')
    expect(probe!.body.forward_only).toBe(true)
    const { data } = own!.body.forward_backward_input
    const rows = data.map(({ loss_fn_inputs: { weights, advantages } }: (typeof data)[number]) => {
      const trained = sum(weights.data)
      // Divided by its trained tokens, as the server does, a row is worth advantage times length again.
      return { trained, each: sum(advantages.data) / trained }
    })
    for (const { trained } of rows) expect(trained).toBeGreaterThan(0)
    const first = rows[0]!
    const last = rows.at(-1)!
    expect(Math.sign(first.each)).toBe(-Math.sign(last.each))
    expect(metrics.loss).toBe(0.5 * data.length)
  })

  it("takes SkyRL's GPU backends for ones that sum, and keeps what they tell", async () => {
    const told = { 'total_loss:sum': 3, 'entropy:max': 4 }
    const { server, trainer } = await scene({ openapi: described.skyrl, metrics: told })
    await using _ = server
    const { metrics } = await trainer.step([chainGroup([1, 0])], call)
    expect(metrics).toMatchObject({ loss: 3, 'server.entropy:max': 4 })
    const cispo = scene({ openapi: described.skyrl, metrics: told }, { loss: 'cispo' })
    const { server: other, trainer: refusing } = await cispo
    await using __ = other
    await expect(refusing.step([chainGroup([1, 0])], call)).rejects.toThrow(/thresholds/)
  })

  it('refuses what Twinkle would take for cross-entropy, and sends it even numbers of rows', async () => {
    const openapi = described.twinkle
    await expect(scene({ openapi }, { loss: 'ppo' })).rejects.toThrow(
      /twinkle has no loss "ppo", and trains cross-entropy.*importance-sampling/,
    )
    // Slopes of both signs would be divided by their sum there.
    await expect(scene({ openapi }, { loss: 'gspo' })).rejects.toThrow(/twinkle has no loss "gspo"/)
    const { server, trainer } = await scene({ openapi, metrics: { 'loss:avg': 7 } })
    await using _ = server
    const { metrics } = await trainer.step([chainGroup([1, 0, 0.25])], call)
    const { data, loss_fn } = server.to('forward_backward')[0]!.body.forward_backward_input
    expect(loss_fn).toBe('importance_sampling')
    expect(data.length % 2).toBe(0)
    expect(metrics.loss).toBe(7)
  })

  it('refuses a clip and targets where none are taken, and takes a clip where it is', async () => {
    await expect(scene({ openapi: described.skyrl }, { gradientClip: 1 })).rejects.toThrow(
      /skyrl does not clip gradients/,
    )
    await expect(scene({ openapi: described.skyrl }, { targets: ['mlp'] })).rejects.toThrow(
      /skyrl chooses itself which maps it changes/,
    )
    const { server, trainer } = await scene({}, { gradientClip: 1, weightDecay: 0.1 })
    await using _ = server
    await trainer.step([chainGroup([1, 0])], call)
    expect(server.to('optim_step')[0]!.body.adam_params).toMatchObject({
      grad_clip_norm: 1,
      weight_decay: 0.1,
    })
  })

  it('takes a checkpoint that is there already for one whose answer was lost', async () => {
    const { server, trainer } = await scene({
      instead: ({ path }) => (path === 'save_weights' ? { code: 409 } : undefined),
    })
    await using _ = server
    const folder = mkdtempSync(join(tmpdir(), 'espalier-tinker-409-'))
    await trainer.save(folder, call)
    const { path } = JSON.parse(readFileSync(join(folder, 'tinker.json'), 'utf8'))
    expect(path).toBe('tinker://M0/weights/espalier-0')
  })
})

describe('what stands behind the address of a trainer', () => {
  it('is read, and refused with what was possible', () => {
    const name = 'tinker:http://a:1?rank=16&targets=attention,mlp&weight-decay=0.1&divides=rows'
    expect(readTinkerUri(name)).toEqual({
      url: 'http://a:1',
      options: { rank: 16, targets: ['attention', 'mlp'], weightDecay: 0.1, divides: 'rows' },
    })
    expect(() => readTinkerUri('tinker:http://a?rnk=1')).toThrow(/rank.*not "rnk".*rank/)
    expect(() => readTinkerUri('tinker:http://a?rank=0')).toThrow(/rank takes a whole number/)
    expect(() => readTinkerUri('tinker:http://a?targets=head')).toThrow(/attention, mlp, unembed/)
  })
})
