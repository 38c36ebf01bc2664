import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { calculator } from '../../../engine/environments/built-in/calculator.ts'
import { printOpened } from '../../../run/run/served/opened-print.ts'
import { byteModel, openRenderer } from '../../../run/settings/model-source.ts'
import { differences, fingerprintOf } from './fingerprint.ts'

/** What a run may be opened from, as it lies on one machine. */
interface Machine {
  readonly answer?: number
  readonly said?: string
  readonly version?: string
  readonly inside?: string
}

/** A folder with an environment of files and a package, answers, a model and a benchmark's data. */
function machine({ answer = 1, said = 'yes', version = '1.0.0', inside = 'a' }: Machine): string {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-test-'))
  const write = (name: string, text: string): void => {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  write('world.ts', "export { answer } from './answer.js'\nimport { pears } from 'pears/fruit'\n")
  write('answer.ts', `export const answer = ${answer}\n`)
  write('answers.jsonl', said)
  write('bench/tasks/1.json', said)
  write(
    'node_modules/pears/package.json',
    JSON.stringify({ version: '2.0.0', dependencies: { stem: '1' } }),
  )
  write('node_modules/pears/fruit.js', `export const pears = '${inside}'`)
  write('node_modules/stem/package.json', JSON.stringify({ version }))
  return folder
}

function printAt(folder: string): ReturnType<typeof fingerprintOf> {
  const print = fingerprintOf({
    environment: `${join(folder, 'world.ts')}#world`,
    policy: `scripted:${join(folder, 'answers.jsonl')}`,
    seats: [`other=tau:retail,root=${join(folder, 'bench')}`],
  })
  return Object.fromEntries(
    Object.entries(print).map(([name, value]) => [name.replace(folder, ''), value]),
  )
}

it("[S1] covers the user's own files and packages with all that they import, and all files that settings name", () => {
  const there = printAt(machine({}))
  expect(differences(there, printAt(machine({})))).toEqual([])
  const differing = (other: Machine): readonly string[] =>
    differences(there, printAt(machine(other))).map(line => line.split(' is ')[0]!)
  expect(differing({ answer: 2 })).toEqual(['the code of /world.ts'])
  expect(differing({ version: '1.0.1' })).toEqual(['the package pears'])
  expect(differing({ inside: 'b' })).toEqual(['the package pears'])
  expect(differing({ said: 'no' })).toEqual(['/answers.jsonl', '/bench'])
})

it('says what differs, here and there', () => {
  expect(differences({ espalier: '1', more: 'x' }, { espalier: '2' })).toEqual([
    'espalier is 2 here and 1 at the coordinator',
    'more is missing here and x at the coordinator',
  ])
})

it('[S1] sees a chat template that writes one space more, whatever its folder is called', async () => {
  const copy = (change: (text: string) => string): string => {
    const folder = join(mkdtempSync(join(tmpdir(), 'espalier-test-')), 'model')
    cpSync(byteModel, folder, { recursive: true })
    const file = join(folder, 'chat_template.jinja')
    writeFileSync(file, change(readFileSync(file, 'utf8')))
    return folder
  }
  const printOf = async (folder: string) =>
    printOpened({ renderer: await openRenderer(folder), environment: calculator() })
  const there = await printOf(copy(text => text))
  expect(await printOf(copy(text => text))).toEqual(there)
  const spaced = await printOf(copy(text => text.replaceAll('<|im_start|>', '<|im_start|> ')))
  expect(spaced).not.toEqual(there)
})
