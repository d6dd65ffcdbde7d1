/** The checkout in Chromium: whatever goes wrong, the processor's journal has one charge. SCREENSHOTS=1 writes docs/images too. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { freshDatabase } from '../../../test/setup/database.ts'
import { readJournal } from '../../gateway/journal.ts'
import type { JournalLine } from '../../gateway/wire.ts'
import { startServiceProcess } from '../../payments/test/service-process.ts'
import { smallerPng } from './smaller-png.ts'

const IMAGES = fileURLToPath(new URL('../../../docs/images/', import.meta.url))
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
/** An image in the README is loaded with the page. */
const IMAGE_MAX_BYTES = 150_000

let url: string
let folder: string
let browser: Browser
let context: BrowserContext
/** What the page must not do: load from elsewhere, or break its own policy. */
let wrong: string[]

beforeAll(async () => {
  const [database, made] = await Promise.all([freshDatabase(), mkdtemp(join(tmpdir(), 'onlyonce-checkout-'))])
  folder = made
  cleanUpLater(() => rm(folder, { recursive: true, force: true }))
  const env = { DEMO_ACCOUNT: '1', DATA_FOLDER: folder }
  const [service, launched] = await Promise.all([
    startServiceProcess({ database, env }),
    chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] }),
  ])
  url = service.url
  browser = launched
  cleanUpLater(() => browser.close())
})

afterEach(async () => {
  await context?.close()
})

async function open(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
  context = await browser.newContext({ viewport: { width: 1_080, height: 800 }, ...options })
  const page = await context.newPage()
  wrong = []
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`)) wrong.push(request.url())
  })
  page.on('pageerror', (error) => wrong.push(error.message))
  page.on('console', (message) => {
    // Chromium reports each lost answer and each status of 400 and more. Those are on purpose.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
      wrong.push(message.text())
    }
  })
  await page.goto(`${url}/`)
  return page
}

const charges = () =>
  readJournal<JournalLine>(join(folder, 'gateway', 'journal.jsonl')).filter(({ kind }) => kind === 'capture')

const choose = (page: Page, label: string) => page.getByRole('radio', { name: label }).check({ force: true })
const pressPay = (page: Page) => page.getByRole('button', { name: /^Pay €/ }).click()
const isOver = (page: Page) => page.getByRole('button', { name: 'New order' }).waitFor({ timeout: 50_000 })
const verdict = async (page: Page) => await page.locator('#verdict').innerText()
const attempts = async (page: Page) => await page.locator('.attempt').allInnerTexts()
const keys = async (page: Page) => new Set(await page.locator('.key').allInnerTexts())
const story = async (page: Page) => await page.locator('#timeline').innerText()

async function photograph(page: Page, name: string): Promise<void> {
  if (process.env.SCREENSHOTS !== '1') return
  // Without the pointer over a button, and as high as its content.
  await page.mouse.move(0, 0)
  const image = smallerPng(await page.screenshot({ fullPage: true }))
  expect(image.length).toBeLessThan(IMAGE_MAX_BYTES)
  await writeFile(join(IMAGES, name), image)
}

describe('one charge, one key', () => {
  const CASES: [label: string, shows: RegExp, attemptsMin: number][] = [
    ['Nothing', /201 paid/, 1],
    ['Lost answer', /no answer in time[\s\S]*201 paid, the stored answer/, 2],
    ['Slow answer', /no answer in time[\s\S]*409 the first attempt is at work[\s\S]*201 paid/, 2],
    ['Server killed', /502 the server died[\s\S]*201 paid/, 2],
    ['Offline', /offline, nothing was sent[\s\S]*201 paid/, 2],
    ['Double tap', /Second tap: it joins/, 1],
    ['Reload', /the page was gone[\s\S]*The page was reloaded[\s\S]*The key was kept[\s\S]*201 paid/, 2],
  ]
  it.each(CASES)('%s', async (label, shows, attemptsMin) => {
    const before = charges().length
    const page = await open()
    await choose(page, label)
    await pressPay(page)
    await isOver(page)
    const [row, ...more] = charges().slice(before)
    expect(more).toEqual([])
    expect(row).toMatchObject({ amount: 6_800, currency: 'eur' })
    await page.getByRole('cell', { name: (row as { payment_intent: string }).payment_intent }).waitFor()
    expect(await verdict(page)).toMatch(/^Charged once\n.*1 key · 1 charge/)
    expect(await story(page)).toMatch(shows)
    expect((await attempts(page)).length).toBeGreaterThanOrEqual(attemptsMin)
    expect((await keys(page)).size).toBe(1)
    expect(wrong).toEqual([])
    if (label === 'Lost answer') await photograph(page, 'checkout.png')
    if (label === 'Server killed') await photograph(page, 'checkout-server-killed.png')
  })
})

it('a browser that is really offline sends nothing, and pays once when it is back', async () => {
  const before = charges().length
  const page = await open()
  await choose(page, 'Nothing')
  await context.setOffline(true)
  await pressPay(page)
  await page.getByText('offline, nothing was sent').first().waitFor()
  expect(charges().length).toBe(before)
  await context.setOffline(false)
  await isOver(page)
  expect(charges().length).toBe(before + 1)
})

it('with a new key for each try the same lost answer is a second charge, and the page says so', async () => {
  const before = charges().length
  const page = await open({ colorScheme: 'dark' })
  await choose(page, 'With a new key')
  await choose(page, 'Lost answer')
  await pressPay(page)
  await isOver(page)
  expect(charges().length).toBe(before + 2)
  await page.getByText('Charged twice').waitFor()
  expect((await keys(page)).size).toBe(2)
  await photograph(page, 'checkout-charged-twice-dark.png')
})

it('a declined card is not charged, and another order follows', async () => {
  const before = charges().length
  const page = await open()
  await choose(page, 'Nothing')
  await choose(page, '0002, is declined')
  await pressPay(page)
  await page.getByText('Declined, not charged').waitFor()
  // The same order with another card: the first is known not to have paid, so it gets a key of its own.
  await choose(page, '4444, pays')
  await pressPay(page)
  await isOver(page)
  expect(charges().length).toBe(before + 1)
  expect((await keys(page)).size).toBe(2)
  await page.getByRole('button', { name: 'New order' }).click()
  expect(await verdict(page)).toMatch(/^Nothing sent yet/)
})

it('works with the keyboard alone', async () => {
  const before = charges().length
  const page = await open()
  await page.getByRole('radio', { name: 'Lost answer' }).focus()
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  // From "one less" to "one more".
  await page.keyboard.press('Enter')
  await page.getByText('€82.50').first().waitFor()
  for (let stops = 0; stops < 10; stops++) {
    if ((await page.evaluate('document.activeElement.id')) === 'pay') break
    await page.keyboard.press('Tab')
  }
  await page.keyboard.press('Enter')
  await isOver(page)
  expect(charges().slice(before)).toMatchObject([{ amount: 8_250 }])
})

describe('accessible, light and dark, wide and narrow', () => {
  it.each([
    ['light', 1_080],
    ['dark', 390],
  ] as const)('%s, %i px', async (colorScheme, width) => {
    const page = await open({ colorScheme, viewport: { width, height: 800 }, bypassCSP: true })
    await choose(page, 'Offline')
    const audit = async () => {
      await page.addScriptTag({ path: AXE })
      return await page.evaluate(async () => {
        const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: unknown[] }> } }
        return (await axe.run()).violations
      })
    }
    expect(await audit()).toEqual([])
    await pressPay(page)
    await page.getByText('offline, nothing was sent').first().waitFor()
    expect(await audit()).toEqual([])
    await isOver(page)
    await page.getByText('Charged once', { exact: true }).waitFor()
    expect(await audit()).toEqual([])
    const overflows = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
    expect(overflows).toBe(false)
    if (width < 500) await photograph(page, 'checkout-narrow-dark.png')
  })
})
