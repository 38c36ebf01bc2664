import { expect, it } from 'vitest'
import { parsePartName } from '../../base/core/names/part-name.ts'
import '../../offers.ts'
import { resolveSettings } from './config.ts'

const resolved = async (flags: object) => (await resolveSettings({ flags })).values

it('a sandbox becomes an option of every environment that is named, whatever its own items hold', async () => {
  const sandbox = 'remote:http://machine:8100,key-variable=KEY'
  const { environment } = await resolved({ environment: 'repair', sandbox })
  expect(parsePartName(environment!).options.get('sandbox')).toBe(sandbox)
  const mixed = await resolved({ environment: 'repair + harbor:./tasks', sandbox: 'podman' })
  expect(mixed.environment).toBe('repair:sandbox=podman + harbor:./tasks,sandbox=podman')
})

it('a sandbox for an environment of the user is refused, as it would change nothing', async () => {
  await expect(resolved({ environment: './own.ts#world', sandbox: 'podman' })).rejects.toThrow(
    '--sandbox podman: ./own.ts#world opens its workspaces itself',
  )
})

it('a harness becomes an environment whose name holds all of it', async () => {
  const tasks = 'harbor:test/fixtures/task-folders,installs=skipped'
  const values = await resolved({ agent: 'codex:seconds=60', tasks, sandbox: 'podman' })
  const { name, variant, options } = parsePartName(values.environment!)
  expect([name, variant, values.tasks]).toEqual(['harness', 'codex', 2])
  expect(Object.fromEntries(options)).toEqual({ seconds: '60', tasks, sandbox: 'podman' })
  const spoken = await resolved({ agent: 'acp:node a.mjs --x=1,2', tasks: 4 })
  expect(Object.fromEntries(parsePartName(spoken.environment!).options)).toEqual({
    command: 'node a.mjs --x=1,2',
    tasks: 'repair',
  })
})

it('task folders are all tasks of their environment; what is wrong with them is said before anything begins', async () => {
  const folders = await resolved({ tasks: 'harbor:test/fixtures/task-folders' })
  expect([folders.environment, folders.tasks]).toEqual(['harbor:test/fixtures/task-folders', 2])
  await expect(resolved({ tasks: 'harbor:nowhere' })).rejects.toThrow(
    '--tasks harbor:nowhere: there is no folder nowhere',
  )
  await expect(
    resolved({ environment: 'desk', tasks: 'harbor:test/fixtures/task-folders' }),
  ).rejects.toThrow('these tasks are of the environment harbor, not of desk')
  await expect(resolved({ agent: 'codx' })).rejects.toThrow('Did you mean "codex"?')
})
