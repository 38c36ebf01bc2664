import { expect, it } from 'vitest'
import { bearer, hello } from '../../../test/open-gateways.ts'
import { openByteRenderer, script } from '../../../test/rolling.ts'
import type { Group } from '../../base/core/group.ts'
import { singleTurn } from '../../engine/environments/built-in/single-turn.ts'
import { scripted } from '../../engine/policies/scripted.ts'
import { type GatewayOptions, gateway } from './listen.ts'

const model = await openByteRenderer()

it.each([
  ['port', 99_999],
  ['port', '8700'],
  ['attempts', 0],
  ['idleSeconds', -1],
  ['graceSeconds', 'long'],
])('refuses %s: %j by its name, before it listens', async (name, value) => {
  const options = { policy: script(model, []), model, port: 0, [name]: value } as GatewayOptions
  await expect(gateway(options)).rejects.toThrow(`options.${name}`)
})

it('[D1] refuses endings and tasks that it could not keep, and takes the right ones after them', async () => {
  const groups: Group[] = []
  const policy = script(model, ['ok<|im_end|>'])
  const onGroup = (group: Group): void => void groups.push(group)
  {
    const options = { policy, model, group: 1, port: 0, graceSeconds: Number.POSITIVE_INFINITY }
    await using door = await gateway({ ...options, onGroup })
    expect(() => door.openAttempt(undefined as unknown as string)).toThrow('a name has 1 to 200')
    const { id, token, url } = door.openAttempt('t')
    const headers = { 'content-type': 'application/json', ...bearer(token) }
    const asked = { method: 'POST', headers, body: JSON.stringify(hello) }
    expect((await fetch(`${url}/v1/chat/completions`, asked)).status).toBe(200)
    await expect(door.closeAttempt('nobody')).rejects.toThrow('no attempt called "nobody"')
    const close = (ending: unknown): Promise<void> => door.closeAttempt(id, ending as object)
    await expect(close({ reward: Number.NaN })).rejects.toThrow('a finite number, not NaN')
    await expect(close({ rewards: 1 })).rejects.toThrow('not with rewards')
    await expect(close(1)).rejects.toThrow('not with 1')
    await close({ reward: 1 })
  }
  expect(groups[0]!.members.map(({ reward }) => reward.total)).toEqual([1])
})

it('takes an environment and tasks that are opened already', async () => {
  const policy = await scripted(['yes'])
  const tasks = [{ id: 'well', prompt: 'Well?', answer: 'yes' }]
  await using door = await gateway({ policy, port: 0, environment: singleTurn(), tasks })
  expect(door.someTask).toBe('well')
})

it.each([
  [{ strategy: 'tree' }, 'options.strategy: gateway takes no option "strategy"'],
  [{ steps: 3 }, 'options.steps: gateway takes no option "steps"; train does'],
  [{ prot: 3 }, 'options.prot: no option called "prot". Did you mean "port"?'],
])('refuses %j, which would change nothing', async (more, message) => {
  const options = { policy: await scripted(['yes']), port: 0, ...more } as GatewayOptions
  await expect(gateway(options)).rejects.toThrow(message)
})
