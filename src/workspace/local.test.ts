import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { findWalls, withoutWalls } from '../sandbox/walls.ts'
import { usualFolder, usualLimits, type Workspace } from './contract.ts'
import { listFilesIn, readFileIn, sizeIn, writeFileIn } from './files.ts'
import { localWorkspaces } from './local.ts'

const { signal } = new AbortController()
const limits = { ...usualLimits, seconds: 2, outputBytes: 1000, disk: 8 }
const open: Workspace[] = []
afterAll(async () => {
  for (const each of open) await each[Symbol.asyncDispose]()
})

async function openOne(): Promise<Workspace> {
  const from = mkdtempSync(join(tmpdir(), 'put-'))
  writeFileSync(join(from, 'a.txt'), 'one')
  const source = { puts: [{ from, to: usualFolder }], workingFolder: usualFolder }
  const workspace = await localWorkspaces({ limits }).open(source, { signal })
  open.push(workspace)
  return workspace
}

const sh = (workspace: Workspace, text: string) =>
  workspace.run(['/bin/sh', '-c', text], { signal })

describe.runIf(findWalls().by !== undefined)('a workspace within walls', () => {
  it('has its files, and links that lead out of it lead nowhere', async () => {
    const workspace = await openOne()
    await writeFileIn(workspace, { path: 'deep/b.txt', text: 'two' }, { signal })
    expect(await listFilesIn(workspace, '.', { signal })).toBe('./a.txt\n./deep\n./deep/b.txt\n')
    const secret = join(mkdtempSync(join(tmpdir(), 'secret-')), 'key')
    writeFileSync(secret, 'secret')
    await sh(workspace, `ln -s ${secret} link; ln -s /etc/passwd users`)
    await expect(readFileIn(workspace, 'link', { signal })).rejects.toThrow('No such file')
    await expect(readFileIn(workspace, 'users', { signal })).rejects.toThrow('No such file')
    await expect(writeFileIn(workspace, { path: 'link', text: 'x' }, { signal })).rejects.toThrow()
    expect(readFileSync(secret, 'utf8')).toBe('secret')
  })

  it('bounds time, output and files, and tells of it', async () => {
    const workspace = await openOne()
    const flood = await sh(workspace, 'yes')
    expect([flood.end, flood.output.length]).toEqual(['out-of-time', 1000])
    const big = await sh(workspace, 'head -c 20000000 /dev/zero > big; echo $?')
    expect(big.output).not.toBe('0\n')
    expect(await sizeIn(workspace, usualFolder, { signal })).toBeLessThanOrEqual(9)
  })

  it('takes folders at the top after commands ran, and only there', async () => {
    const workspace = await openOne()
    const from = mkdtempSync(join(tmpdir(), 'tests-'))
    writeFileSync(join(from, 'test.sh'), 'echo tested')
    await sh(workspace, 'ln -s /etc hidden')
    await expect(workspace.put({ from, to: `${usualFolder}/hidden` }, { signal })).rejects.toThrow(
      'top',
    )
    await expect(workspace.put({ from, to: '/usr' }, { signal })).rejects.toThrow('system')
    await workspace.put({ from, to: '/tests' }, { signal })
    expect((await sh(workspace, 'sh /tests/test.sh')).output).toBe('tested\n')
  })
})

it('H1: where no walls can be built commands are refused, unless that is accepted', () => {
  const builder = withoutWalls()
  expect(() => localWorkspaces({ limits, builder })).toThrow('walls=none')
  const { isolation } = localWorkspaces({ limits, builder, walls: 'none' })
  expect(isolation.missing).toContain('network')
})
