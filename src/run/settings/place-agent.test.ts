import { expect, it } from 'vitest'
import { parsePartName } from '../../base/core/names/part-name.ts'
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
