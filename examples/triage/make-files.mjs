// Writes the files of this example: tickets to train on, tickets held out while the settings of the
// page were chosen, fresh tickets that were used only after that, and demonstrations.
// node make-files.mjs
import { writeFileSync } from 'node:fs'

const names = 'Ada Ben Cleo Dan Eva Finn Gina Hugo Ida Jon Kim Leo'.split(' ')
const things = 'lamp chair clock kettle carpet mirror table vase'.split(' ')
const sentences = {
  billing: [
    'I was charged twice for the %',
    'the invoice for my % is wrong',
    'please refund the %',
  ],
  technical: ['the % does not switch on', 'my % shows an error', 'the app cannot find my %'],
  shipping: ['my % has not arrived', 'where is the % I ordered', 'the % went to an old address'],
  spam: ['win a free % today', 'cheap % offers click here', 'earn money with your %'],
}

/** Numbers that look random and are the same each time. */
let state = 7
function pick(list) {
  state = (state * 1103515245 + 12345) % 2147483648
  return list[Math.floor((state / 2147483648) * list.length)]
}

const seen = new Set()
function ticket() {
  const right = pick(Object.keys(sentences))
  const customer = pick(names)
  const text = pick(sentences[right]).replace('%', pick(things))
  const data = { customer, plan: pick(['gold', 'free']), ticket: text, right }
  const key = `${customer} ${text}`
  if (seen.has(key)) return ticket()
  seen.add(key)
  return data
}

const call = (id, name, input) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }],
})
const answer = (id, content) => ({ role: 'tool', tool_call_id: id, content })

/** How one of the staff does it: the queue is right, the priority in four of five cases. */
function demonstrate({ id, customer, plan, ticket, right }) {
  const done = { role: 'assistant', content: 'done' }
  const [due, other] = plan === 'gold' ? ['high', 'normal'] : ['normal', 'high']
  const messages = [
    { role: 'system', content: 'Look the customer up, then route the ticket. Close spam.' },
    { role: 'user', content: `${customer} writes: ${ticket}` },
    call('1', 'customer', { name: customer }),
    answer('1', `plan ${plan}`),
    ...(right === 'spam'
      ? [call('2', 'close', {}), answer('2', 'closed')]
      : [
          call('2', 'route', { queue: right, priority: pick([due, due, due, due, other]) }),
          answer('2', 'routed'),
        ]),
    done,
  ]
  return { task: id, messages }
}

const numbered = (count, name) =>
  Array.from({ length: count }, (_, index) => ({ id: `${name}-${index + 1}`, ...ticket() }))
const write = (file, rows) =>
  writeFileSync(file, `${rows.map(row => JSON.stringify(row)).join('\n')}\n`)

const tickets = numbered(400, 'ticket')
write('tickets.jsonl', tickets)
write('held-out.jsonl', numbered(64, 'held-out'))
write('demonstrations.jsonl', tickets.slice(0, 120).map(demonstrate))
// Drawn from another seed, without repeating the others: the final test.
state = 2027
write('fresh.jsonl', numbered(128, 'fresh'))
