import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Environment } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { type TauServices, tauFactory } from './factory.ts'

const root = 'test/fixtures/tau-checkout'

const speaker: Speaker = {
  name: 'echo',
  say: async messages => ({
    message: { role: 'assistant', content: `heard ${messages.length}` },
    finish: 'stop',
    usage: { prompt: 1, sampled: 1 },
  }),
}

const openNamed = (text: string, services: Partial<TauServices> = {}): Promise<Environment> =>
  openEnvironment(text, { tau: tauFactory({ openSpeaker: () => speaker, ...services }) })

const call = {
  signal: new AbortController().signal,
  seed: 1,
  lanes: makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 }),
}

async function firstWords(environment: Environment): Promise<unknown> {
  const data = environment.readTask({ index: 0 })
  const world = await environment.open({ id: 'x' as TaskId, data }, call)
  return world.opening[1]?.content
}

describe('tau-bench by name', () => {
  it('is played by the model that is named', async () => {
    const asked: string[] = []
    const environment = await openNamed(`tau:retail,root=${root},split=train,speaker=some:where`, {
      openSpeaker: text => {
        asked.push(text)
        return speaker
      },
    })
    expect(asked).toEqual(['some:where'])
    expect(environment.splits?.[0]).toBe('train')
    expect(await firstWords(environment)).toBe('heard 2')
  })

  it('is played by a script or a person', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tau-script-'))
    try {
      const script = join(folder, 'lines.txt')
      await writeFile(script, 'Good day\n###STOP###\n')
      const scripted = await openNamed(`tau:airline,root=${root},user=scripted,script=${script}`)
      expect(await firstWords(scripted)).toBe('Good day')
    } finally {
      await rm(folder, { recursive: true })
    }
    const ask = async (text: string): Promise<string> => `typed after: ${text.slice(0, 17)}`
    const human = await openNamed(`tau:retail,root=${root},user=human`, { ask })
    expect(await firstWords(human)).toBe('typed after: You are Ada Moss ')
  })

  it('asks the user’s model at its own temperature, and prices what it says', async () => {
    const temperatures: unknown[] = []
    const openSpeaker = (): Speaker => ({
      ...speaker,
      say: (messages, call) => {
        temperatures.push(call.temperature)
        return speaker.say(messages, call)
      },
    })
    for (const more of ['price=2.5/10', 'temperature=0.2']) {
      const environment = await openNamed(`tau:retail,root=${root},speaker=x,${more}`, {
        openSpeaker,
      })
      const data = environment.readTask({ index: 0 })
      const world = await environment.open({ id: 'x' as TaskId, data }, call)
      const cost = more.startsWith('price') ? 12.5e-6 : null
      expect(await world.report?.()).toMatchObject({ user: { calls: 1, cost }, user_cost: null })
    }
    expect(temperatures).toEqual([1, 0.2])
  })

  it('warns of data it does not know', async () => {
    const warnings: string[] = []
    await openNamed(`tau:retail,root=${root},speaker=x`, { warn: text => warnings.push(text) })
    expect(warnings[0]).toContain('tau_bench/envs/retail/data/orders.json')
  })

  it.each([
    ['tau:retail', /root: Invalid input/],
    [`tau:hotel,root=${root}`, /variant/],
    [`tau:retail,root=${root}`, /name it with speaker=URI/],
    [`tau:retail,root=${root},user=human`, /needs a terminal/],
    [`tau:retail,root=${root},user=scripted`, /script=FILE/],
    [`tau:retail,root=${root},speaker=x,fixed=maybe`, /fixed/],
    [`tau:retail,root=${root},speaker=x,colour=red`, /colour/],
    [`tau:retail,root=${root},speaker=x,price=cheap`, /write PROMPT\/SAMPLED/],
    ['tau:retail,root=~/no-such-folder,speaker=x', /^No tau-bench retail in \/.*no-such-folder/],
  ])('%s is refused', async (text, problem) => {
    await expect(openNamed(text)).rejects.toThrow(problem)
  })
})
