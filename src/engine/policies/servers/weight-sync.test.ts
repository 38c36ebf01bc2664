import { describe, expect, it } from 'vitest'
import { serveWeights } from '../../../../test/servers/weights.ts'
import { sampleRequest } from '../../../base/core/conformance/policy.conformance.ts'
import { withBalance } from '../with-balance.ts'
import { openSglang } from './sglang.ts'
import { openVllm } from './vllm.ts'

const call = { signal: AbortSignal.timeout(50_000) }
const model = (version: number, path = 'MODEL') => ({ path, kind: 'model', version }) as const
const adapter = (version: number) => ({ path: `a/${version}`, kind: 'adapter', version }) as const

describe('weights on SGLang', () => {
  it('change while what runs ends first, and their version is looked up afterwards', async () => {
    await using server = await serveWeights('sglang')
    await using policy = openSglang(server.url)
    await policy.weights!.update(model(3), call)
    expect(server.asked).toEqual([
      '/update_weights_from_disk',
      '/update_weight_version',
      '/continue_generation',
      '/model_info',
    ])
    expect(server.bodies[0]).toEqual({
      model_path: 'MODEL',
      weight_version: '3',
      flush_cache: true,
      abort_all_requests: false,
    })
  })

  it('change at once where that was asked for: paused, flushed, and going on', async () => {
    await using server = await serveWeights('sglang')
    await using policy = openSglang(server.url, { update: 'abort' })
    await policy.weights!.update(model(3), call)
    expect(server.asked[0]).toBe('/pause_generation')
    expect(server.bodies[0]).toEqual({ mode: 'abort' })
    expect(server.bodies[1]).toMatchObject({ abort_all_requests: true })
    expect(server.asked).toContain('/continue_generation')
  })

  it('go on being served when others cannot be loaded, and the reason is told', async () => {
    await using server = await serveWeights('sglang')
    await using policy = openSglang(server.url, { update: 'abort' })
    await expect(policy.weights!.update(model(4, 'MODEL-missing'), call)).rejects.toThrow(
      /Failed to get weights iterator/,
    )
    expect(server.asked.at(-1)).toBe('/continue_generation')
  })

  it('that keep their old name are not sampled from as new ones', async () => {
    await using server = await serveWeights('sglang', { forgets: true })
    await using policy = openSglang(server.url)
    await expect(policy.weights!.update(model(3), call)).rejects.toThrow(
      /serves version "default" after MODEL was loaded as "3"/,
    )
  })

  it('may be adapters: the new one is asked for by its name, the old one is unloaded', async () => {
    await using server = await serveWeights('sglang')
    await using policy = openSglang(server.url)
    await policy.weights!.update(adapter(1), call)
    await policy.weights!.update(adapter(2), call)
    await policy.sample(sampleRequest(), call).catch(() => {})
    const lora = server.bodies.filter((_, at) => server.asked[at]!.includes('lora'))
    expect(lora).toEqual([
      { lora_name: 'espalier-1', lora_path: 'a/1' },
      { lora_name: 'espalier-2', lora_path: 'a/2' },
      { lora_name: 'espalier-1' },
    ])
    const sampled = server.bodies[server.asked.indexOf('/generate')]!
    expect(sampled.lora_path).toBe('espalier-2')
  })
})

describe('weights on vLLM', () => {
  it('are reloaded while it is paused, and no cached prefix of the old ones is kept', async () => {
    await using server = await serveWeights('vllm')
    await using policy = openVllm(server.url)
    await policy.weights!.update(model(5), call)
    expect(server.asked).toEqual([
      '/pause?mode=wait',
      '/collective_rpc',
      '/reset_prefix_cache',
      '/update_weight_version',
      '/resume',
      '/weight_info',
    ])
    expect(server.bodies[1]).toEqual({
      method: 'reload_weights',
      kwargs: { weights_path: 'MODEL' },
    })
  })

  it('may be adapters, served as models of their own', async () => {
    await using server = await serveWeights('vllm')
    await using policy = openVllm(server.url, { update: 'abort' })
    await policy.weights!.update(adapter(7), call)
    await policy.sample(sampleRequest(), call).catch(() => {})
    expect(server.asked.slice(0, 2)).toEqual(['/pause?mode=abort', '/v1/load_lora_adapter'])
    expect(server.bodies.at(-1)!.model).toBe('espalier-7')
  })
})

it('weights change on every server of a policy, one after the other', async () => {
  await using one = await serveWeights('sglang')
  await using other = await serveWeights('sglang')
  await using policy = withBalance([openSglang(one.url), openSglang(other.url)])
  await policy.weights!.update(model(2), call)
  expect(other.asked).toEqual(one.asked)
})
