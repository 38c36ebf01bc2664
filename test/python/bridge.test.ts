import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const program = fileURLToPath(
  new URL('../../integrations/python/espalier_bridge.py', import.meta.url),
)
const hasPython = spawnSync('python3', ['--version']).status === 0
if (!hasPython) console.warn('SKIPPED: no python3 here; the bridge was not run.')

/** What the bridge says when it is asked to host a package, with modules of these names and nothing else. */
function hello(name: string, modules: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bridge-'))
  for (const [module, text] of Object.entries(modules)) {
    writeFileSync(join(folder, `${module}.py`), text)
  }
  const input = `${JSON.stringify({ id: 1, op: 'hello', package: name, arguments: {} })}\n`
  // Without the packages of this machine: only the standard library and the folder.
  const { stdout } = spawnSync('python3', ['-S', '-B', program], {
    input,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, PYTHONPATH: folder },
  })
  return (JSON.parse(stdout) as { error: string }).error
}

describe.skipIf(!hasPython)('a package that cannot be hosted', () => {
  it('is named where it is not installed, with what it was tried as', () => {
    expect(hello('nothere')).toMatch(
      /^ModuleNotFoundError: nothere was tried as an environment of verifiers, but \S*python\S* has no module nothere and no module verifiers$/,
    )
    expect(hello('not-here')).toContain('has no module not_here and no module verifiers')
    expect(hello('nothere:Game')).toMatch(
      /nothere:Game was tried as a game .* has no module nothere$/,
    )
    expect(hello('gymnasium')).toMatch(/as a game with reset and step, but .*no module gymnasium$/)
    expect(hello('reasoning_gym')).toMatch(/reasoning_gym was tried as .*no module reasoning_gym$/)
  })

  it('is not called missing where it is installed and something else is not', () => {
    expect(hello('games', { games: '' })).toMatch(
      /has no module verifiers; a game is named MODULE:CLASS$/,
    )
    const broken = hello('games:Game', { games: 'import deeper.still' })
    expect(broken).toMatch(/games:Game was tried as a game .* has no module deeper$/)
    const inner = hello('games:Game', { games: 'import json.nothing' })
    expect(inner).toMatch(/games:Game was tried as .*: No module named 'json.nothing'$/)
  })
})
