import type { MakeTasksOptions, Task } from '../../../base/core/environment.ts'
import type { TaskId } from '../../../base/core/ids.ts'
import { pick, type Random, random, seedOf, shuffle } from '../../../base/math/random.ts'
import type { PassageTask } from './passages.ts'

const beginnings = [
  'Ar',
  'Bel',
  'Cor',
  'Dun',
  'El',
  'Fen',
  'Gar',
  'Hol',
  'Ith',
  'Jor',
  'Kel',
  'Lom',
]
const middles = ['da', 'ne', 'ri', 'so', 'tu', 'va', 'wi', 'ya', 'zo', 'mi']
const ends = ['ford', 'wick', 'holm', 'ton', 'by', 'stead', 'mere', 'garth']
const givenNames = [
  'Ada',
  'Bruno',
  'Clara',
  'Dmitri',
  'Elsa',
  'Farid',
  'Greta',
  'Hugo',
  'Inez',
  'Jun',
]
const trades = ['carpenter', 'chemist', 'cartographer', 'organist', 'baker', 'printer', 'surveyor']
const goods = ['glass', 'linen', 'clocks', 'rope', 'paper', 'honey', 'salt', 'tiles']
const rivers = ['Senn', 'Orla', 'Tave', 'Iller', 'Morn', 'Ghent', 'Brae', 'Lisk']

/** Tasks whose answer needs two passages: who holds an office in a town, and something about them. */
export function makePassageTasks({
  count,
  seed,
  split = 'train',
}: MakeTasksOptions): readonly Task<PassageTask>[] {
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf(seed, 'passages', split, index))
    return { id: `passages/${split}/${index}` as TaskId, data: makeTask(draw) }
  })
}

function makeTask(draw: Random): PassageTask {
  const names = makeNames(draw, 10)
  const pairs = Array.from({ length: 4 }, (_, index) => {
    const town = names[2 * index]!
    const person = `${givenNames[(index * 3 + Math.floor(draw() * 3)) % 10]} ${names[2 * index + 1]}`
    return { town, person, born: 1890 + Math.floor(draw() * 90), trade: pick(trades, draw) }
  })
  const { town, person, born, trade } = pairs[0]!
  const asksYear = draw() < 0.5
  const all = pairs.flatMap(pair => [townPassage(pair, draw), personPassage(pair, draw)])
  return {
    question: asksYear
      ? `In which year was the mayor of ${town} born?`
      : `What was the trade of the mayor of ${town}?`,
    answer: [asksYear ? String(born) : trade],
    passages: shuffle(all, draw),
    supporting: [town, person],
  }
}

interface Pair {
  readonly town: string
  readonly person: string
  readonly born: number
  readonly trade: string
}

/** The sentence that answers the question stands in the middle, among others. */
function townPassage({ town, person }: Pair, draw: Random): PassageTask['passages'][number] {
  const [river, good] = [pick(rivers, draw), pick(goods, draw)]
  const text =
    `${town} is a market town on the river ${river}, half a day north of the coast. It has been known ` +
    `for its ${good} since the old guild moved there from the hills, and a fair is held on the first ` +
    `Monday of every other month. The council meets in the former customs house. Its mayor is ` +
    `${person}, who was chosen by a narrow vote after a long and rainy summer. A stone bridge of ` +
    `${3 + Math.floor(draw() * 9)} arches connects the two halves of the town.`
  return { title: town, text }
}

function personPassage(
  { person, born, trade }: Pair,
  draw: Random,
): PassageTask['passages'][number] {
  const text =
    `${person} grew up beside a mill on the river ${pick(rivers, draw)} as the youngest of ` +
    `${3 + Math.floor(draw() * 5)} children. The family kept bees and sold ${pick(goods, draw)} at the ` +
    `weekly market. According to the parish register the birth was in ${born}, in a winter when the ` +
    `river froze. Before public office the daily work was that of a ${trade}, in a workshop that still ` +
    `stands behind the church. Letters from that time are kept in the town archive.`
  return { title: person, text }
}

function makeNames(draw: Random, count: number): readonly string[] {
  const names = new Set<string>()
  while (names.size < count)
    names.add(pick(beginnings, draw) + pick(middles, draw) + pick(ends, draw))
  return [...names]
}
