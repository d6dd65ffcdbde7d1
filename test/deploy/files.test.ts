/** The files of deploy/ against the programs and the schemas that they are made for. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { validate } from 'dockerfile-utils'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { Job } from 'kubernetes-models/batch/v1/Job'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap'
import { Service } from 'kubernetes-models/v1/Service'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { SERVICE_METRICS } from '../../apps/payments/metrics.ts'
import { PROGRAMS } from '../../build/service-programs.ts'
import { METRICS, prometheusName } from '../../src/observe/metrics.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
/** How long a drain may take, and closing behind it: main.ts and the library. */
const DRAIN_S = 25 + 5

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook_url: string }
}
const rules: readonly Rule[] = parse(read('deploy/prometheus/rules.yml')).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
)

/** Every name that a process of the service may be scraped for, with those that Prometheus makes of a histogram. */
const KNOWN = new Set(['up', ...Object.keys(SERVICE_METRICS)])
for (const metric of Object.values(METRICS)) {
  const name = prometheusName(metric)
  const endings = metric.kind === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
  for (const ending of endings) KNOWN.add(`${name}${ending}`)
}

/** The metrics that a query asks for: words with a selector, a range or an end behind them, outside of texts. */
function metricsOf(expr: string): readonly string[] {
  const plain = expr
    .replaceAll(/"[^"]*"/g, '""')
    .replaceAll(/(?:by|without) \([^)]*\)/g, '')
    .replaceAll(/\{[^}]*\}/g, '{}')
  return [...plain.matchAll(/\b([a-z_:][a-z0-9_:]*)\b(?!\s*\()/g)]
    .map(([, name]) => name!)
    .filter((name) => !WORDS.has(name))
}
const WORDS = new Set(['or', 'and', 'unless', 'm', 'h', '__rate_interval'])

describe('Prometheus', () => {
  const promtool = (...args: string[]) => spawnSync('promtool', args, { cwd: ROOT, encoding: 'utf8' })

  it('takes the rules, and its own tests of them pass', () => {
    for (const args of [
      ['check', 'rules', 'deploy/prometheus/rules.yml'],
      ['test', 'rules', 'deploy/prometheus/rules.test.yml'],
      ['check', 'config', '--syntax-only', 'deploy/prometheus/prometheus.yml'],
    ]) {
      const { status, stdout, stderr, error } = promtool(...args)
      expect(status, `${error?.message ?? ''}${stdout}${stderr}`).toBe(0)
    }
  })

  it('finds every metric that the rules ask for', () => {
    expect(rules.length).toBeGreaterThan(20)
    for (const { alert, expr } of rules) {
      const asked = metricsOf(expr)
      expect(asked, alert).not.toEqual([])
      expect(
        asked.filter((name) => !KNOWN.has(name)),
        alert,
      ).toEqual([])
    }
    expect(metricsOf('sum by (code) (rate(no_such_total{code="up"}[5m])) > 0.1')).toEqual(['no_such_total'])
  })

  it('tests every alarm, and each has an entry in the runbook', () => {
    const tested = [...read('deploy/prometheus/rules.test.yml').matchAll(/^ {2}- name: (\w+)$/gm)].map(
      ([, name]) => name,
    )
    expect(tested).toEqual(rules.map(({ alert }) => alert))
    const headings = [...read('docs/guides/runbook.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
    expect(headings).toEqual(rules.map(({ alert }) => alert))
    for (const { alert, labels, annotations } of rules) {
      expect(annotations.runbook_url).toMatch(new RegExp(`/docs/guides/runbook\\.md#${alert.toLowerCase()}$`))
      expect(['page', 'ticket']).toContain(labels.severity)
      expect(annotations.summary).toMatch(/\.$/)
    }
  })
})

describe('Grafana', () => {
  const { panels, templating } = JSON.parse(read('deploy/grafana/payments.json'))

  it('finds every metric that the dashboard shows', () => {
    for (const { title, targets } of panels)
      for (const { expr } of targets)
        expect(
          metricsOf(expr).filter((name) => !KNOWN.has(name)),
          title,
        ).toEqual([])
  })

  it('has panels with ids of their own that do not overlap, and asks for its data source', () => {
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length)
    expect(
      new Set(panels.map(({ gridPos }: { gridPos: { x: number; y: number } }) => `${gridPos.x} ${gridPos.y}`))
        .size,
    ).toBe(panels.length)
    expect(templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource' })
    for (const { datasource } of panels) expect(datasource.uid).toBe('$'.concat('{datasource}'))
  })
})

describe('Docker', () => {
  const programs = Object.keys(PROGRAMS)
  const compose = parse(read('deploy/compose.yaml'), { merge: true })

  it('takes the Dockerfile without a complaint', () => {
    expect(
      validate(read('deploy/Dockerfile')).map(({ message, range }) => `${range.start.line + 1}: ${message}`),
    ).toEqual([])
    // The checker is able to find something.
    expect(validate('FROM node AS a\nRUN\nCMD ["a"]\nCMD ["b"]\n')).not.toEqual([])
  })

  it('starts programs that are built, with time for a drain, without rights', () => {
    for (const name of ['migrate', 'api', 'worker']) {
      const service = compose.services[name]
      const program = service.command.find((word: string) => word.endsWith('.mjs'))
      expect(programs).toContain(/^apps\/payments\/dist\/([\w-]+)\.mjs$/.exec(program)?.[1])
      expect(Number.parseInt(service.stop_grace_period, 10)).toBeGreaterThan(DRAIN_S)
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
    }
    expect(compose.services.migrate.environment.DATABASE_URL).toContain('payments_owner:')
    for (const name of ['api', 'worker']) {
      expect(compose.services[name].environment.DATABASE_URL).toContain('payments_service:')
      expect(compose.services[name].depends_on.migrate.condition).toBe('service_completed_successfully')
    }
    // Only a proxy on the machine itself reaches what is published.
    for (const { ports = [] } of Object.values<{ ports?: string[] }>(compose.services))
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/)
  })

  it('is told variables that the service knows', () => {
    const documented = read('apps/payments/README.md')
    const told = [...read('deploy/compose.env.example').matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name)
    expect(told.length).toBeGreaterThan(4)
    for (const name of told) expect(documented).toContain(`\`${name}\``)
  })
})

describe('Kubernetes', () => {
  const MODELS: Readonly<Record<string, new (data: never) => { validate(): void }>> = {
    'apps/v1 Deployment': Deployment,
    'batch/v1 Job': Job,
    'policy/v1 PodDisruptionBudget': PodDisruptionBudget,
    'v1 ConfigMap': ConfigMap,
    'v1 Service': Service,
  }
  const documents = ['service.yaml', 'migrate.yaml'].flatMap((file) =>
    parseAllDocuments(read(`deploy/kubernetes/${file}`)).map((document) => {
      expect(document.errors).toEqual([])
      return document.toJS()
    }),
  )
  const deployments = documents.filter(({ kind }) => kind === 'Deployment')

  it('takes every manifest by its schema', () => {
    expect(documents.length).toBeGreaterThan(6)
    for (const document of documents) {
      const Model = MODELS[`${document.apiVersion} ${document.kind}`]!
      expect(() => new Model(document as never).validate(), document.metadata.name).not.toThrow()
    }
    const wrong = structuredClone(deployments[0])
    wrong.spec.template.spec.containers[0].ports[0].containerPort = 'http'
    expect(() => new Deployment(wrong).validate()).toThrow()
  })

  it('probes, drains, and runs without rights', () => {
    expect(deployments.map(({ metadata }) => metadata.name)).toEqual(['payments-api', 'payments-worker'])
    for (const { spec } of deployments) {
      const { containers, terminationGracePeriodSeconds, securityContext } = spec.template.spec
      const [container] = containers
      expect(container.livenessProbe.httpGet.path).toBe('/healthz')
      expect(container.startupProbe.httpGet.path).toBe('/healthz')
      expect(container.readinessProbe.httpGet.path).toBe('/readyz')
      const preStopS = Number(/(\d+)\)$/.exec(container.lifecycle.preStop.exec.command[2])![1]) / 1_000
      expect(terminationGracePeriodSeconds).toBeGreaterThan(preStopS + DRAIN_S)
      expect(securityContext.runAsNonRoot).toBe(true)
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
      })
      expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels)
    }
  })

  it('selects pods that there are, and gives the role that migrates to none of them', () => {
    const labels = deployments.map(({ spec }) => spec.template.metadata.labels)
    for (const { kind, spec } of documents) {
      const selector =
        kind === 'Service' ? spec.selector : kind === 'PodDisruptionBudget' ? spec.selector.matchLabels : null
      if (selector !== null) expect(labels).toContainEqual(selector)
    }
    expect(JSON.stringify(deployments)).not.toContain('payments-migrate')
  })
})

describe('systemd', () => {
  const units = readdirSync(join(ROOT, 'deploy/systemd'))
  const textOf = (unit: string) => read(`deploy/systemd/${unit}`)

  it('has time for a drain, no rights and a restart', () => {
    const text = textOf('onlyonce-payments@.service')
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(text)![1])).toBeGreaterThan(DRAIN_S)
    for (const line of ['KillSignal=SIGTERM', 'Restart=always', 'NoNewPrivileges=yes', 'DynamicUser=yes'])
      expect(text.split('\n')).toContain(line)
    expect(textOf('onlyonce-payments-migrate.service')).not.toContain('service.env')
  })

  it('takes the units, where there is a systemd to ask', () => {
    const folder = mkdtempSync(join(tmpdir(), 'onlyonce-units-'))
    try {
      for (const unit of units) {
        // Node.js may be elsewhere on this machine.
        const here = textOf(unit).replaceAll('/usr/bin/node', process.execPath)
        writeFileSync(join(folder, unit.replace('@.', '@api.')), here)
      }
      const files = readdirSync(folder).map((file) => join(folder, file))
      const { status, stderr, error } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], {
        encoding: 'utf8',
        env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
      })
      const missing = (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT'
      if (missing) console.warn('systemd-analyze is not installed: the units were read, and not verified.')
      else expect([status, stderr.split('\n').filter((line) => line.includes('onlyonce'))]).toEqual([0, []])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
