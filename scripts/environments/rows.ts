import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Serving } from '../../test/serving.ts'

/** What was given on the command line: Pythons, checkouts, images, all by path. */
export interface Given {
  readonly python?: string | undefined
  readonly verifiers?: string | undefined
  readonly 'old-verifiers'?: string | undefined
  readonly glossary?: string | undefined
  readonly 'tau-bench'?: string | undefined
  readonly 'tau2-bench'?: string | undefined
  readonly openenv?: string | undefined
  readonly games?: string | undefined
  readonly engine?: string | undefined
}

/** One environment to check. */
export interface Row {
  readonly name: string
  /** The options it needs; without them it is skipped. */
  readonly needs: readonly (keyof Given)[]
  /** The arguments of `espalier check`, given the address of what is served. */
  readonly words: (url: string) => readonly string[]
  /** What has to run beside it. */
  readonly serving?: Serving
  readonly variables?: Readonly<Record<string, string>>
}

const own = resolve('dist/cli/main.js')
const scratch = mkdtempSync(join(tmpdir(), 'espalier-environments-'))

function written(name: string, text: string): string {
  const path = join(scratch, name)
  writeFileSync(path, text)
  return path
}

/** A row that needs nothing beside it. */
function plain(name: string, tasks: number, needs: readonly (keyof Given)[] = []): Row {
  return { name, needs, words: () => [name, '--tasks', String(tasks)] }
}

/** Every environment that can be named, and what serves worlds to it. */
export function rowsFor(given: Given): readonly Row[] {
  return [
    ...builtInRows(),
    ...workspaceRows(given),
    ...tauRows(given),
    ...openEnvRows(given),
    ...pythonRows(given),
    ...mcpRows(),
  ]
}

function builtInRows(): readonly Row[] {
  return [
    plain('calculator', 4),
    plain('key-value', 4),
    plain('interpreter:python', 2),
    plain('interpreter:javascript', 2),
    plain('desk', 4),
    plain('desk:length=long', 2),
    plain('web:shop', 2),
    plain('web:tracker', 2),
    plain('./examples/seats/haggle.ts#haggle', 4),
    plain('./examples/seats/haggle.ts#market', 4),
    { ...plain('single-turn', 1), words: () => ['single-turn', '--tasks', sumTask()] },
  ]
}

function sumTask(): string {
  return written('sum.jsonl', '{"prompt": "2 + 3?", "answer": "5"}\n')
}

/** Files and commands: within walls, on a server of ours, in containers. */
function workspaceRows({ engine = 'podman' }: Given): readonly Row[] {
  const folders = 'harbor:test/fixtures/task-folders'
  const sandbox = served('sandbox', 'serve')
  const contained = (name: string): Row => ({
    name: `${name},sandbox=${engine}`,
    needs: ['engine'],
    words: () => [`${name}${name.includes(':') ? ',' : ':'}sandbox=${engine}`, '--tasks', '1'],
  })
  return [
    plain('repair', 1),
    plain('./test/fixtures/notes.ts#notes', 1),
    plain(`${folders},installs=skipped`, 2),
    {
      name: 'repair:sandbox=URL of `sandbox serve`',
      needs: [],
      serving: sandbox,
      words: url => [`repair:sandbox=${url}`, '--tasks', '1'],
    },
    contained('repair'),
    contained(folders),
  ]
}

/** A command of ours that serves something at a port. */
function served(...words: readonly string[]): Serving {
  return {
    command: port => [process.execPath, own, ...words, '--port', String(port)],
    path: '/',
  }
}

function tauRows(given: Given): readonly Row[] {
  const script = written('user.txt', 'Hello\n###STOP###\n')
  const user = `user=scripted,script=${script}`
  const first = ['retail', 'airline'].map(
    (domain): Row => ({
      name: `tau:${domain}`,
      needs: ['tau-bench'],
      words: () => [`tau:${domain},root=${given['tau-bench']},${user}`, '--tasks', '2'],
    }),
  )
  // Copies of tau2-bench without large files need the older checkout for one of them.
  const older = given['tau-bench'] === undefined ? '' : `,predecessor=${given['tau-bench']}`
  const root = `root=${given['tau2-bench']}${older}`
  const second = ['airline', 'retail', 'telecom', 'telecom-workflow', 'banking_knowledge'].map(
    (domain): Row => ({
      name: `tau2:${domain}`,
      needs: ['tau2-bench'],
      // `evaluation=env` needs no judge, which would be a model.
      words: () => [`tau2:${domain},${root},evaluation=env,${user}`, '--tasks', '2'],
    }),
  )
  const solo: Row = {
    name: 'tau2:telecom,agent=solo',
    needs: ['tau2-bench'],
    words: () => [`tau2:telecom,${root},agent=solo`, '--tasks', '2'],
  }
  return [...first, ...second, solo]
}

function openEnvRows({ openenv = '', games = '' }: Given): readonly Row[] {
  const game = (name: string, script: string, needs: readonly (keyof Given)[]): Row => ({
    name: `openenv:URL of ${name}`,
    needs,
    words: url => [`openenv:${url},errors=observe`, '--tasks', '2'],
    serving: {
      command: port => [openenv, '-B', script, name, String(port)],
      path: '/health',
      variables: { PYTHONPATH: games },
    },
  })
  const small = 'test/python/openenv/games.py'
  const real = 'test/python/openenv/real_games.py'
  return [
    game('guess', small, ['openenv']),
    game('shelf', small, ['openenv']),
    game('grid_world_env', real, ['openenv', 'games']),
    game('maze_env', real, ['openenv', 'games']),
    game('connect4_env', real, ['openenv', 'games']),
    {
      name: 'openenv:URL of `environment serve key-value`',
      needs: [],
      words: url => [`openenv:${url}`, '--tasks', '2'],
      serving: { ...served('environment', 'serve', 'key-value'), path: '/health' },
    },
  ]
}

function pythonRows(given: Given): readonly Row[] {
  const { python, verifiers, 'old-verifiers': old, glossary = '' } = given
  const bridge = resolve('test/python/bridge')
  const row = (name: string, needs: readonly (keyof Given)[], options: string): Row => ({
    name: `python:${name}`,
    needs,
    words: () => [`python:${name},${options}`, '--tasks', '2'],
    variables: { PYTHONPATH: bridge },
  })
  const asked = row('glossary', ['verifiers', 'glossary'], '')
  return [
    row('reasoning_gym,dataset=chain_sum', ['python'], `python=${python}`),
    row('gymnasium,id=FrozenLake-v1', ['python'], `python=${python}`),
    row('letters_env', ['old-verifiers'], `python=${old}`),
    row('letters_v1', ['verifiers'], `python=${verifiers},seconds=300`),
    {
      ...asked,
      words: () => [`python:glossary,python=${verifiers},seconds=300`, '--tasks', '1'],
      variables: { PYTHONPATH: resolve(glossary) },
    },
  ]
}

/** The protocol's own package as server, and an environment of ours at the same door. */
function mcpRows(): readonly Row[] {
  const program = resolve('test/fixtures/mcp-http.mjs')
  return [
    {
      name: 'tool-loop:mcp=URL of the MCP SDK',
      needs: [],
      words: url => [`tool-loop:mcp=${url}/mcp,match=number`, '--tasks', sumTask()],
      serving: { command: port => [process.execPath, program, String(port)], path: '/mcp' },
    },
    {
      name: 'tool-loop:mcp=URL of `environment serve calculator`',
      needs: [],
      words: url => [`tool-loop:mcp=${url}/mcp,match=number`, '--tasks', sumTask()],
      serving: { ...served('environment', 'serve', 'calculator'), path: '/health' },
    },
  ]
}
