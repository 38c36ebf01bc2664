import { expect, it } from 'vitest'
import { usualLimits } from '../contract.ts'
import { openSandbox } from './kinds.ts'

it('a sandbox is opened by its kind, with its items', async () => {
  await using here = await openSandbox('local:walls=none', usualLimits)
  expect(here.isolation.by).toContain('namespaces')
})

it('a kind, an item or an address that is wrong is told with what was possible', async () => {
  await expect(openSandbox('dcker', usualLimits)).rejects.toThrow(
    'No sandbox called "dcker". Known: local, docker, podman, container, remote, e2b, daytona. Did you mean "docker"?',
  )
  await expect(openSandbox('local:wals=none', usualLimits)).rejects.toThrow('wals')
  await expect(openSandbox('remote:ftp://machine', usualLimits)).rejects.toThrow('Invalid URL')
  await expect(
    openSandbox('http://127.0.0.1:1,key-variable=ESPALIER_NO_SUCH_KEY', usualLimits),
  ).rejects.toThrow('the variable ESPALIER_NO_SUCH_KEY is not set')
})
