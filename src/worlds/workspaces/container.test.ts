import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { containerWorkspaces } from './container.ts'
import { usualLimits } from './contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'engine-'))
afterAll(() => rmSync(folder, { recursive: true }))
const { signal } = new AbortController()
const limits = { ...usualLimits, memory: 512, processes: 20 }

/** A program that writes down what an engine is asked, and runs commands as they are. */
function fakeEngine(): string {
  const engine = join(folder, 'engine')
  const script = `#!/bin/sh
echo "$@" >> ${folder}/asked
case $1 in
  build) echo built ;;
  run) echo c1 ;;
  commit) echo forked ;;
  exec) while [ "$1" != timeout ]; do [ $# = 0 ] && exit 0; shift; done; shift 4; exec "$@" ;;
esac
`
  writeFileSync(engine, script)
  chmodSync(engine, 0o755)
  return engine
}

it('asks an engine for containers without network, within limits, and removes them', async () => {
  const workspaces = containerWorkspaces({ engine: fakeEngine(), limits })
  const source = {
    puts: [{ from: folder, to: '/app' }],
    workingFolder: '/app',
    image: { build: '/context' },
  }
  const workspace = await workspaces.open(source, { signal })
  const { output, code } = await workspace.run(['sh', '-c', 'cat; exit 3'], {
    signal,
    input: 'said',
    seconds: 7,
    variables: { WANTED: '1' },
  })
  expect([output, code]).toEqual(['said', 3])
  const fork = await workspace.fork({ signal })
  await fork[Symbol.asyncDispose]()
  await workspace[Symbol.asyncDispose]()
  const asked = readFileSync(join(folder, 'asked'), 'utf8').trim().split('\n')
  const bounds =
    '--network none --memory 512m --pids-limit 20 --security-opt no-new-privileges --stop-timeout 0'
  expect(asked).toEqual([
    'info',
    'build --quiet /context',
    `run --detach ${bounds} --entrypoint sleep built infinity`,
    'exec c1 mkdir -p /app',
    'exec c1 sh -c rm -rf "$1" && mkdir -p "$1" sh /app',
    `cp ${folder}/. c1:/app`,
    'exec --interactive --workdir /app --env WANTED=1 c1 timeout -s KILL 7 sh -c cat; exit 3',
    'exec c1 sh -c kill -9 -1 2>/dev/null; true',
    'commit c1',
    `run --detach ${bounds} --entrypoint sleep forked infinity`,
    'rm --force c1',
    'rmi --force --no-prune forked',
    'rm --force c1',
  ])
})

it('an engine that does not answer is refused with its name', () => {
  expect(() => containerWorkspaces({ engine: join(folder, 'none'), limits })).toThrow(
    /no container engine answers as .*none/,
  )
})

it('takes no image whose name the engine would read as an option', async () => {
  const workspaces = containerWorkspaces({ engine: fakeEngine(), limits })
  const source = { puts: [], workingFolder: '/app', image: { name: '--privileged' } }
  await expect(workspaces.open(source, { signal })).rejects.toThrow('no image is called')
})
