import type { Message } from '@espalier/text'
import { z } from 'zod'
import type { OutputOf } from '../../base/core/tool.ts'
import { late } from '../../engine/environments/late.ts'
import type { Toolset } from '../../engine/environments/tools/tool.ts'
import { tool } from '../../engine/environments/tools/tool.ts'
import type { Session } from './session.ts'

const schemas = late(() => {
  const ref = z.string().max(40).describe('The reference of an element, such as e12')
  return {
    click: z.object({ ref, double: z.boolean().optional() }),
    type: z.object({
      ref,
      text: z.string().max(10_000),
      submit: z.boolean().optional().describe('Press Enter afterwards'),
    }),
    press: z.object({ key: z.string().max(40).describe('Such as Enter, Escape or ArrowDown') }),
    select: z.object({ ref, option: z.string().max(1000).describe('The text of the option') }),
    scroll: z.object({ direction: z.enum(['down', 'up']) }),
    go: z.object({ url: z.url({ protocol: /^https?$/ }).max(2000) }),
    wait: z.object({ seconds: z.number().min(0).max(10) }),
    tab: z.object({ number: z.int().min(1) }),
    download: z.object({ name: z.string().max(100) }),
    nothing: z.object({}),
  }
})

/** Does something in a turn; gives the page as it is then. */
type Act = (turn: number, work: () => Promise<unknown>) => Promise<string>

/** What can be done with the pages of a session; each answers with the page as it is then. */
export function webTools(session: Session, act: Act): Toolset {
  const { click, type, press, select, scroll, go, wait, tab, download, nothing } = schemas()
  function action<Schema>(
    description: string,
    inputSchema: Schema,
    work: (input: OutputOf<Schema>) => Promise<unknown>,
  ) {
    return tool({
      description,
      inputSchema,
      execute: (input, { messages }) => act(turnOf(messages), () => work(input)),
    })
  }
  return {
    click: action('Clicks an element.', click, ({ ref, double }) =>
      session.at(ref, at => (double ? at.dblclick() : at.click())),
    ),
    type: action('Replaces the text of a field.', type, ({ ref, text, submit }) =>
      session.at(ref, async at => {
        await at.fill(text)
        if (submit) await at.press('Enter')
      }),
    ),
    press: action('Presses a key.', press, ({ key }) =>
      session.on(page => page.keyboard.press(key)),
    ),
    select: action('Chooses an option of a list.', select, ({ ref, option }) =>
      session.at(ref, at => at.selectOption({ label: option })),
    ),
    scroll: action(
      'Scrolls the page, and shows the next or previous part of a long one.',
      scroll,
      ({ direction }) => session.scroll(direction),
    ),
    go: action('Goes to an address.', go, ({ url }) => session.go(url)),
    back: action('Goes back to the page before.', nothing, () =>
      session.on(page => page.goBack({ waitUntil: 'domcontentloaded' })),
    ),
    wait: action('Waits, and shows the page again.', wait, ({ seconds }) =>
      session.on(page => page.waitForTimeout(seconds * 1000)),
    ),
    show_tab: action('Shows the tab of that number.', tab, ({ number }) => session.show(number)),
    close_tab: action('Closes the tab that is shown.', nothing, () => session.close()),
    read_download: tool({
      description: 'Shows the text of a file that was downloaded.',
      inputSchema: download,
      execute: ({ name }) => readDownload(session, name),
    }),
  }
}

/** The number of the turn that is answered, from 0. */
function turnOf(messages: readonly Message[]): number {
  return messages.filter(({ role }) => role === 'assistant').length - 1
}

function readDownload({ downloads }: Session, name: string): string {
  const found = downloads.findLast(each => each.name === name)
  if (found?.text !== undefined) return found.text
  if (found) throw new Error(`${name} is no text, or longer than can be shown`)
  const names = downloads.map(each => each.name).join(', ')
  throw new Error(
    `nothing called ${JSON.stringify(name)} was downloaded; there is: ${names || 'nothing'}`,
  )
}
