import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { findWalls, withoutWalls } from '../sandboxes/walls.ts'
import { usualFolder, usualLimits, type Workspace } from './contract.ts'
import { listFilesIn, readFileIn, readWholeFileIn, sizeIn, writeFileIn } from './files.ts'
import { localWorkspaces } from './local.ts'

const { signal } = new AbortController()
const limits = { ...usualLimits, seconds: 2, outputBytes: 1000, disk: 8 }
const open: Workspace[] = []
afterAll(async () => {
  for (const each of open) await each[Symbol.asyncDispose]()
})

async function openOne(more: Partial<typeof limits> = {}): Promise<Workspace> {
  const from = mkdtempSync(join(tmpdir(), 'put-'))
  writeFileSync(join(from, 'a.txt'), 'one')
  const source = { puts: [{ from, to: usualFolder }], workingFolder: usualFolder }
  const bounds = { limits: { ...limits, ...more } }
  const workspace = await localWorkspaces(bounds).open(source, { signal })
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

  it('says where a list of files is not all of them', async () => {
    const workspace = await openOne({ outputBytes: 100_000 })
    await sh(workspace, 'rm a.txt; mkdir many; for i in $(seq 499); do : > many/$i; done')
    const lines = async () => (await listFilesIn(workspace, '.', { signal })).trim().split('\n')
    expect(await lines()).toHaveLength(500)
    await sh(workspace, ': > many/one-more')
    expect((await lines()).slice(499)).toEqual(['./many/99', '[only the first 500 are shown]'])
  })

  it('shows no more of a command than it may, however little that is', async () => {
    const workspace = await openOne({ outputBytes: 3 })
    const ran = await sh(workspace, 'echo said; echo wrong >&2')
    expect(ran).toMatchObject({ output: 'sai', complaints: 'wro', cut: 5 })
  })

  it('reads a file whole that is longer than what a command may show', async () => {
    const workspace = await openOne()
    const text = `\ufeff${'é☃ wäre 1000 \n'.repeat(300)}`
    await writeFileIn(workspace, { path: 'long.txt', text }, { signal })
    const whole = { signal, outputBytes: limits.outputBytes }
    expect(await readWholeFileIn(workspace, 'long.txt', whole)).toBe(text)
    await sh(workspace, "printf 'caf\\351 au lait' > latin.txt")
    await expect(readWholeFileIn(workspace, 'latin.txt', whole)).rejects.toThrow('UTF-8')
    await expect(readWholeFileIn(workspace, 'none', whole)).rejects.toThrow('No such file')
  })

  it('is removed whatever commands left in it, and so is a copy that could not be made', async () => {
    const into = mkdtempSync(join(tmpdir(), 'workspaces-'))
    vi.stubEnv('TMPDIR', into)
    const workspace = await openOne({ seconds: 20 })
    const name = 'n'.repeat(200)
    await sh(workspace, 'mkdir -p closed/in; touch closed/in/x; chmod 000 closed/in closed')
    await sh(workspace, `for i in $(seq 30); do mkdir ${name} && cd -P ${name}; done`)
    await expect(workspace.fork({ signal })).rejects.toThrow('could not be copied')
    await workspace[Symbol.asyncDispose]()
    await workspace[Symbol.asyncDispose]()
    vi.unstubAllEnvs()
    expect(readdirSync(into).filter(left => left.startsWith('espalier-'))).toEqual([])
  })
})

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '30', undefined])(
  'a limit of %s seconds is refused by name',
  seconds => {
    const wrong = { ...limits, seconds: seconds as number }
    expect(() => localWorkspaces({ limits: wrong })).toThrow('limits.seconds')
  },
)

it('H1: where no walls can be built commands are refused, unless that is accepted', () => {
  const builder = withoutWalls()
  expect(() => localWorkspaces({ limits, builder })).toThrow('walls=none')
  const { isolation } = localWorkspaces({ limits, builder, walls: 'none' })
  expect(isolation.missing).toContain('network')
})

it('a workspace shows folders of this machine that lie in each other, whichever is named first', async () => {
  const outer = mkdtempSync(join(tmpdir(), 'espalier-shown-'))
  mkdirSync(join(outer, 'inner'))
  writeFileSync(join(outer, 'inner', 'word.txt'), 'seen')
  const shown = [join(outer, 'inner', 'word.txt'), join(outer, 'inner'), outer, outer]
  const source = { puts: [], workingFolder: '/agent', shown }
  await using workspaces = localWorkspaces({ limits: usualLimits })
  await using workspace = await workspaces.open(source, { signal })
  const { output } = await workspace.run(['cat', shown[0]!], { signal })
  expect(output).toBe('seen')
  const written = await workspace.run(['sh', '-c', `echo x > ${shown[0]}`], { signal })
  expect(written.code).not.toBe(0)
})
