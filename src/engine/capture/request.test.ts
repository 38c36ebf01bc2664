import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { withOwnRecord } from '../../../test/captured.ts'
import { attemptAt, contextOf, script } from '../../../test/rolling.ts'
import { byteModel, openRenderer } from '../../run/settings/model-source.ts'
import { singleTurn } from '../environments/built-in/single-turn.ts'
import { openCapture } from './capture.ts'

const world = singleTurn({ match: 'exact' })

/** A model folder whose template knows these roles and passes over others. */
async function folderWith(roles: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-roles-'))
  await cp(byteModel, folder, { recursive: true })
  const template = `{%- for message in messages -%}{%- if message.role in ${roles} -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endif -%}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}`
  await writeFile(join(folder, 'chat_template.jinja'), template)
  return folder
}

it.each([
  ["['system', 'user', 'assistant']", 'system'],
  ["['system', 'developer', 'user', 'assistant']", 'developer'],
])(
  'shows what a developer says, whether or not the template knows developers: %s',
  async (roles, role) => {
    const renderer = await openRenderer(await folderWith(roles), {})
    const policy = withOwnRecord(script(renderer, ['Yes.<|im_end|>']))
    const context = contextOf({ environment: world, renderer, policy })
    const capture = openCapture({
      context,
      attempt: attemptAt(world, { prompt: 'x', answer: 'x' }),
    })
    const { signal } = new AbortController()
    const messages = [
      { role: 'developer', content: 'Be terse.' },
      { role: 'user', content: 'Go.' },
    ] as const
    await capture.respond({ messages, tools: [] }, { signal })
    expect(renderer.decode(policy.record[0]!.prompt)).toContain(`<|im_start|>${role}\nBe terse.`)
  },
)
