import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { until } from '../until.ts'
import { espalier, scratch, start } from './cli.ts'

const folder = scratch()
const at = (name: string): string => join(folder, name)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Two arms with one seed; a cell takes two steps. */
const design = `question = "Does a higher temperature learn more?"
tokens = 250
seeds = [11]
[settings]
environment = "desk"
policy = "embedded"
tasks = 8
heldOut = 4
tasksPerStep = 4
group = 2
checkpointEvery = 1
learningRate = 0.001
[arms.one]
[arms.hot]
temperature = 1.4
`

it('an experiment killed in the middle of a cell and called again gives the table of an undisturbed one', async () => {
  writeFileSync(at('hot.toml'), design)
  const words = ['experiment', at('hot.toml'), '--jobs', '1', '--out']
  const whole = await espalier(...words, at('whole'))
  expect(whole.code, whole.stderr).toBe(0)
  const { child, finished } = start([...words, at('killed')])
  // One cell has ended, and the other has taken a step.
  const begun = at('killed/cells/hot/11/metrics.jsonl')
  const isOver = (): boolean => child.exitCode !== null
  expect(await until(() => existsSync(begun), isOver)).toBe(true)
  child.kill('SIGKILL')
  await finished
  expect(existsSync(at('killed/table.md'))).toBe(false)
  const first = readFileSync(at('killed/cells/one/11.json'), 'utf8')
  const rest = await espalier(...words, at('killed'))
  expect(rest.code, rest.stderr).toBe(0)
  const tableOf = (name: string): string => readFileSync(at(`${name}/table.md`), 'utf8')
  expect(tableOf('killed')).toBe(tableOf('whole'))
  expect(readFileSync(at('killed/cells/one/11.json'), 'utf8')).toBe(first)
})
