// Every benchmark, part and figure with its meaning, for `scripts/bench --help`. A part needs an entry to compile
// (parts.ts), and a run fails on other figures.

export interface PartEntry {
  /** Time on two cores, s, without the build. */
  seconds: number
  /** Name → meaning. `of N` in a meaning is the number of samples. */
  figures: Readonly<Record<string, string>>
  /** Only with `--only`. */
  alone?: true
}

export const TABLE = {
  api: {
    reads: {
      seconds: 60,
      figures: {
        get_list_p95_ms: '500 mixed reads a second for 20 s beside 2,000 polling agents: due → answered, 95th percentile',
        sse_event_latency_ms: 'PUT sent → event read from the stream, before the reads begin, 95th percentile of 50',
      },
    },
    start: { seconds: 5, figures: { cli_start_ms: 'start → end of skerry version, median of 40' } },
    authorize: { seconds: 2, figures: { authorize_us: 'one decision for a user with 50 of 1,000 role bindings, µs' } },
    audit: { seconds: 10, figures: { audit_append_per_s: 'audit entries a second, each with a change of its own, on SQLite' } },
    login: { seconds: 15, figures: { oidc_login_ms: 'sign-in by a browser at a real Dex: first request → session, median of 50' } },
  },
  chain: {
    chain: {
      seconds: 200,
      figures: {
        push_to_apply_p50_ms: 'webhook sent → changed object written, median of 200 commits',
        push_to_apply_p99_ms: 'the same, 99th percentile',
        drift_heal_p50_ms: 'foreign delete or edit → repaired, median of 100',
        drift_heal_p99_ms: 'the same, 99th percentile',
        apply_4000_ratio: 'first apply of 4,000 ConfigMaps ÷ a bare loop of the same applies',
        floor_ops_per_s: 'that bare loop, applies a second',
        agent_rss_mb: 'memory of the agent after those applies, MB',
        server_rss_mb: 'memory of the server, MB',
        idle_api_requests_per_min: 'requests of an idle agent to the API server, without watches',
        idle_polls_per_min: 'requests of an idle agent to the Skerry server',
      },
    },
  },
  dashboard: {
    pages: {
      seconds: 150,
      figures: {
        js_gzip_kb: 'script that the first page loads, gzip, kB',
        first_list_ms: 'list of 5,000 clusters × 40 services: empty cache, navigation → rows on the screen, median of 5',
        filter_ms: 'a letter typed into the filter of that list → other rows on the screen, 95th percentile of 24',
        event_to_pixel_ms: 'push of an agent sent → the mark of its cluster is drawn, 95th percentile of 20',
        fps: 'frames a second while that list scrolls and 1,000 status rows a second come in, over 12 s',
        longest_task_ms: 'longest task of the main thread that opened, filtered and scrolled that list; 0: none over 50 ms',
        heap_growth_mb_per_hour: 'growth of the heap under those rows, extrapolated from 75 s, MB an hour',
      },
    },
    demo: {
      seconds: 60,
      figures: {
        demo_link_ms: 'start of skerry dev --demo-data → sign-in link is printed',
        demo_chart_ms: 'the same → 500 clusters are on the chart of the opened link, most of them with their reported state',
      },
    },
    hour: {
      seconds: 3_700,
      alone: true,
      figures: {
        heap_hour_growth_mb:
          'growth of the heap of the list of 5,000 clusters in an hour of 1,000 status rows a second, MB: slope of 60 samples',
        heap_hour_end_mb: 'its heap at the end of that hour, MB',
      },
    },
  },
  health: {
    verdicts: {
      seconds: 2,
      figures: {
        health_same_pct: 'objects of the corpus whose health is the verdict, %',
        health_false_healthy_pct: 'objects that are Healthy here and Degraded or Progressing by their verdict, %',
        health_without_rules_same_pct: 'custom objects whose health is the verdict, without the rules of their kinds, %',
        health_without_rules_false_healthy_pct: 'the second figure without the rules of their kinds, %',
      },
    },
  },
  observe: {
    scrape: {
      seconds: 30,
      figures: {
        scrape_ms: 'metrics of 5,000 clusters, 100 services and all agents, 75,390 series: request → text, 95th percentile of 30',
        scrape_block_max_ms: 'longest block of the event loop meanwhile',
      },
    },
    notify: {
      seconds: 30,
      figures: {
        notify_10000_events_messages: 'messages to each receiver about 10,000 events of an outage and its end',
        notify_block_max_ms: 'longest block of the event loop meanwhile',
      },
    },
    asking: {
      seconds: 115,
      figures: {
        ask_roundtrip_ms: 'question for a live object sent → whole answer, 95th percentile of 200',
        ask_roundtrip_p50_ms: 'the same, median',
        log_first_byte_ms: 'question for a log sent → its first line, 95th percentile of 30',
        log_stream_mb_per_s: 'a log of 60 MB, MB a second',
        sync_slowdown_under_asking: 'commit → object beside 50 questions a second and a log of 5 MB/s ÷ the same alone, medians of 48',
        sync_slowdown_under_questions: 'the same with the questions alone',
        sync_slowdown_under_log: 'the same with the log alone',
        busy_asks_per_s: 'answers a second meanwhile',
        followed_log_mb_per_s: 'what arrived of that log, MB a second',
        busy_ask_roundtrip_ms: 'answers meanwhile, 95th percentile',
        asked_agent_rss_mb: 'memory of the agent meanwhile, MB',
        asked_server_rss_mb: 'memory of the server meanwhile, MB',
      },
    },
    query: {
      seconds: 125,
      figures: {
        query_2m_rows_p95_ms: 'nine SQL queries over 2,000,000 objects of 10,000 clusters: request → answer, 95th percentile of 108',
        query_2m_rows_limited_p95_ms: 'the same by a caller who may read one project of four',
      },
    },
    why: {
      seconds: 90,
      figures: {
        why_correct_pct: 'broken deployments on a real API server whose first cause is the true one, %; nodes and kubelets are played',
        why_us: 'one explanation, from objects, Pods and Events to ranked causes, µs',
      },
    },
  },
  install: {
    sizes: {
      seconds: 15,
      figures: {
        image_server_mb: 'image of the server for amd64, compressed, MB',
        image_agent_mb: 'image of the agent for amd64, compressed, MB',
        agent_binary_mb: 'dist/skerry-agent, MB',
      },
    },
    limit: {
      seconds: 40,
      figures: {
        agent_rss_limit_128_ok: 'agent in a cgroup of 128 MB, page cache included: 1 if it applied 4,000 ConfigMaps and still runs',
        agent_rss_limited_mb: 'its memory 5 s later, MB',
      },
    },
    first: {
      seconds: 30,
      figures: { install_to_first_apply_s: 'helm install of the agent → first object of a service, without the download of the image, s' },
    },
    upgrade: {
      seconds: 60,
      figures: {
        upgrade_agents: 'agents that are upgraded, each with a real API server; SKERRY_UPGRADE_AGENTS=50 needs 18 GB of memory',
        upgrade_api_writes: 'their writes while server and agents are replaced by a newer build, but those of one commit in between',
      },
    },
  },
  reconcile: {
    apps: {
      seconds: 80,
      figures: {
        apps_1000_ready_ms: 'webhook → 1,000 services of four objects are Synced and Healthy',
        apps_1000_floor_ms: 'a bare apply loop of the same objects until the controllers observed them',
        apps_1000_ready_ratio: 'the first ÷ the second',
      },
    },
    requests: {
      seconds: 110,
      figures: {
        apps_1000_requests: 'requests of the agent for those 1,000 services, without watches',
        one_change_ms: 'one object of 1,000 services changes: webhook → changed, median of 20',
        one_change_p99_ms: 'the same, 99th percentile',
        one_change_requests: 'requests of the agent for one such change, most of 20',
      },
    },
    remove: {
      seconds: 110,
      figures: {
        remove_1000_requests: 'requests to remove 1,000 services',
        remove_1000_ms: 'delete call → the server knows that all services are removed',
        remove_1000_calls_ms: 'the delete call',
      },
    },
    drift: {
      seconds: 60,
      figures: {
        drift_heal_p50_ms: 'foreign delete or edit → repaired, median of 400',
        drift_heal_p99_ms: 'the same, 99th percentile',
        drift_storm_1000_ms: '1,000 edits at once: first edit → all repaired',
        false_drift_writes: 'writes after 200 changes that are not drift',
      },
    },
    order: {
      seconds: 60,
      figures: {
        wave_latency_ms: 'a wave is healthy → first request of the next wave, median',
        hook_phase_latency_ms: 'a hook Job completes → first request of the next phase, median',
      },
    },
    bulk: {
      seconds: 420,
      figures: {
        apply_4000_ratio: 'first apply of 4,000 ConfigMaps ÷ a bare loop of the same applies',
        floor_ops_per_s: 'that bare loop, applies a second',
        noop_revision_ms: 'a commit that changes none of 4,000 objects → rendered',
        noop_revision_requests: 'requests of the agent for that commit',
        restart_api_writes: 'writes of an agent that restarts and finds no change',
        cold_start_ms: 'agent started without a server → an object deleted meanwhile is back, median of 5',
        idle_api_writes_per_hour: 'writes of an idle agent at 4,000 objects',
        idle_api_lists_per_hour: 'gets and lists of an idle agent',
        idle_cpu_ms_per_min: 'processor time of an idle agent a minute',
        agent_rss_mb: 'memory of the agent at 4,000 objects, MB',
        agent_rss_peak_mb: 'its peak, MB',
        agent_rss_anon_mb: 'the part that is not mapped from a file, MB',
        agent_rss_foreign_mb: 'memory with 20,000 foreign objects in the cluster, MB',
        cpu_ms_per_1000_events: 'processor time of the agent for 1,000 foreign changes that are not drift',
        foreign_event_requests: 'requests of the agent for those changes',
      },
    },
    'slow-webhook': {
      seconds: 120,
      figures: {
        healing_p50_ms_under_slow_webhook: 'deleted object → repaired while 20 services wait for a slow admission webhook, median',
        healing_p99_ms_under_slow_webhook: 'the same, 99th percentile',
        healing_max_ms_under_slow_webhook: 'the same, maximum',
      },
    },
    churn: {
      seconds: 1_850,
      alone: true,
      figures: {
        churn_rss_mb_per_hour: 'growth of the memory of an agent under commits, edits and deletes, MB an hour',
        churn_rss_last_mb: 'its memory at the end, MB',
        churn_minutes: 'length of the run',
      },
    },
  },
  render: {
    identical: {
      seconds: 12,
      figures: {
        renders_for_1000_identical_clusters: 'renderer executions for 1,000 clusters without a difference',
        relabel_one_cluster_renders: 'renderer executions after one cluster got another label',
        render_rss_peak_mb: 'peak memory of the server, MB, without its worker',
      },
    },
    monorepo: {
      seconds: 8,
      figures: { mono_repo_500_services_one_change_renders: 'renderer executions after a commit changed one of 500 services' },
    },
    hostile: {
      seconds: 240,
      figures: {
        poll_p99_ms_quiet: 'polls of 1,000 agents, 99th percentile',
        poll_p99_ms_under_hostile_render: 'the same while hostile content is rendered, worst of 11 cases',
      },
    },
    git: { seconds: 3, figures: { git_fetch_one_commit_bytes: 'fetch of one commit that changes one of 400 files, both directions' } },
    helm: { seconds: 5, figures: { helm_ratio: 'commit → rows of a chart ÷ the helm process alone' } },
    kustomize: { seconds: 5, figures: { kustomize_ratio: 'commit → rows of a kustomization ÷ the kustomize process alone' } },
  },
  secrets: {
    seals: {
      seconds: 2,
      figures: {
        seal_per_s: 'Secrets sealed a second, of 5,000',
        open_per_s: 'rows opened a second with their wrapped keys, of 5,000',
      },
    },
    page: {
      seconds: 3,
      figures: { page_overhead_pct: 'bytes of a page of 4,000 objects, 5 % Secrets, over those of the same page in clear, %' },
    },
    rotate: {
      seconds: 120,
      figures: {
        rotate_10000_s: 'command for new recipient keys of 10,000 clusters → the last agent has its 20 sealed rows anew, s',
        rotate_10000_ask_s: 'the part of it in which the command asks for them, s',
        rotate_10000_server_cpu_s: 'processor time of the server meanwhile, s',
        rotate_10000_lag_p99_ms: 'lag of its event loop meanwhile, 99th percentile, ms',
      },
    },
    reseal: { seconds: 1, figures: { rows_changed_by_reseal: 'rows of 500 Secrets that differ when another process renders them again' } },
    site: {
      seconds: 15,
      figures: {
        apply_secret_ms: 'refresh of a repository → changed Secret applied, server and agent on one machine, median of 30',
        secret_leaks: 'places in files and messages of server and agent where a marked secret is, in clear or as a filter writes it',
      },
    },
  },
  store: {
    ingest: { seconds: 30, figures: { status_rows_per_s_sqlite: 'durable status rows a second from 10,000 clusters, SQLite' } },
    rollups: { seconds: 25, figures: { rollup_ratio: 'status rows a second with counts ÷ without counts' } },
    'ingest-postgres': {
      seconds: 20,
      figures: { status_rows_per_s_postgres: 'durable status rows a second from 2,000 clusters, PostgreSQL' },
    },
    queries: {
      seconds: 120,
      figures: {
        db_bytes_per_status_row: 'size of the file ÷ 2.23 million status rows',
        fleet_query_2m_p50_ms: 'lists with filters, orders and searches over those rows, median of 478 requests',
        fleet_query_2m_p95_ms: 'the same, 95th percentile',
        fleet_query_2m_max_ms: 'the same, maximum',
        fleet_query_2m_whole_page_p95_ms: 'the same, only requests with a full page, 95th percentile',
        event_loop_lag_p99_ms: 'delay of timers on the event loop of the server under lists and 2,000 status rows a second',
        event_loop_lag_max_ms: 'the same, maximum',
        busy_fleet_query_2m_p95_ms: 'lists under those status rows, 95th percentile',
        busy_pushes_per_s: 'pushes of status rows a second meanwhile',
      },
    },
    'queries-postgres': {
      seconds: 150,
      figures: {
        fleet_query_2m_p95_ms_postgres: 'fleet_query_2m_p95_ms on PostgreSQL',
        fleet_query_2m_whole_page_p95_ms_postgres: 'fleet_query_2m_whole_page_p95_ms on PostgreSQL',
      },
    },
    blocks: {
      seconds: 60,
      figures: {
        block_first_passes_max_ms: 'longest block of the event loop at 10,000 clusters × 200 services: first service passes',
        block_services_max_ms: 'the same: list of services',
        block_service_max_ms: 'the same: one service',
        block_service_clusters_max_ms: 'the same: clusters of a service',
        block_service_revisions_max_ms: 'the same: revisions of a service',
        block_clusters_max_ms: 'the same: list of clusters',
        block_cluster_max_ms: 'the same: one cluster',
        block_cluster_services_max_ms: 'the same: services of a cluster',
        block_placements_max_ms: 'the same: list of placements',
        block_confirmations_max_ms: 'the same: list of 10,000 confirmations',
        block_removal_preview_max_ms: 'the same: preview of a removal from all clusters',
        block_confirm_prune_max_ms: 'the same: one prune is confirmed',
        block_delete_service_max_ms: 'the same: a service of all clusters is deleted',
        block_removal_orders_max_ms: 'the same: its removal is confirmed',
      },
    },
    feed: {
      seconds: 10,
      figures: {
        feed_latency_p50_ms: 'write by the API → read from the event stream, median',
        feed_latency_p99_ms: 'the same, 99th percentile',
      },
    },
    'feed-postgres': { seconds: 15, figures: { feed_latency_p99_ms_postgres: 'write by another process → event read, PostgreSQL' } },
    followers: {
      seconds: 15,
      figures: {
        feed_100_followers_p50_ms: 'commit → event read by each of 100 followers, median',
        feed_100_followers_p99_ms: 'the same, 99th percentile',
      },
    },
    'followers-postgres': {
      seconds: 15,
      figures: {
        feed_100_followers_p50_ms_postgres: 'feed_100_followers_p50_ms on PostgreSQL',
        feed_100_followers_p99_ms_postgres: 'feed_100_followers_p99_ms on PostgreSQL',
      },
    },
    storm: {
      seconds: 70,
      figures: {
        reconnect_storm_10000_s: '10,000 agents reconnect at once with 20 status rows each: until the last one is acknowledged, s',
        reconnect_storm_timeouts: 'requests without an answer in time',
        reconnect_storm_cuts: 'connections that were cut',
        reconnect_storm_429: 'requests answered with 429',
        reconnect_storm_503: 'requests answered with 503',
        reconnect_storm_latency_p50_ms: 'request → answer, median',
        reconnect_storm_latency_p99_ms: 'the same, 99th percentile',
        reconnect_storm_latency_max_ms: 'the same, maximum',
        reconnect_storm_lag_p99_ms: 'delay of timers on the event loop of the server, 99th percentile',
        reconnect_storm_server_cpu_ms: 'processor time of the server',
        reconnect_storm_server_rss_mb: 'memory of the server at the end, MB',
        reconnect_storm_server_rss_peak_mb: 'its peak, MB',
      },
    },
    relabel: {
      seconds: 100,
      figures: {
        relabel_ms: 'a cluster of 10,000 gets other labels → 9 of 200 services left, 9 came, median of 20',
        relabel_put_ms: 'the same by PUT',
        relabel_apply_ms: 'the same by apply',
        relabel_max_ms: 'the same, maximum',
        relabel_lag_p99_ms: 'delay of timers on the event loop of the server, 99th percentile',
        relabel_clusters: 'clusters of the fleet',
        relabel_services: 'services of the fleet',
        relabel_services_moved: 'services that leave or come with a change of labels',
      },
    },
    joins: {
      seconds: 100,
      figures: {
        join_storm_1000_ms: '1,000 clusters join 10,000: first join → all have their services',
        join_storm_joined_ms: 'first join → last join answered',
        join_storm_cpu_ms: 'processor time of the server',
        join_storm_poll_p50_ms: 'polls of other agents meanwhile, median',
        join_storm_poll_p99_ms: 'the same, 99th percentile',
        join_storm_lag_p99_ms: 'delay of timers on the event loop of the server, 99th percentile',
        join_storm_placements: 'placements that these clusters got',
      },
    },
  },
  sync: {
    merge: {
      seconds: 20,
      figures: {
        merge_ratio: 'rows of a full page merged a second with all checks ÷ a bare cr-sqlite merge loop',
        delta_ratio: 'the same for a delta of 4,000 rows',
        bootstrap_20k_apply_ms: 'a page of 20,000 objects inflated, checked and merged',
        replica_bytes_per_object: 'size of the file of the replica ÷ objects',
      },
    },
    bytes: {
      seconds: 60,
      figures: {
        reconnect_0_bytes: 'new connection of an agent that misses nothing, both directions',
        reconnect_1_bytes: 'the same when one object changed',
        reconnect_100_bytes: 'the same when 100 objects changed',
        rebase_equal_bytes: 'the shard file was rebuilt and no row of 20,500 differs',
        bootstrap_20k_bytes: 'a new agent receives 20,000 objects',
        bootstrap_20k_ratio: 'the same ÷ zstd of the same documents in one piece',
        bootstrap_20k_ms: 'start of the agent loop → all rows in the replica, median',
        replica_file_bytes_per_object: 'size of the file of the replica ÷ objects',
        reconnect_0_tls_bytes: 'reconnect_0_bytes with a full TLS 1.3 handshake',
      },
    },
    flaps: {
      seconds: 20,
      figures: {
        offline_24h_10k_flaps_bytes: 'first contact after a day offline with 10,000 changes of health, both directions',
        offline_24h_outbox_rows: 'rows that waited in the outbox',
      },
    },
    idle: {
      seconds: 30,
      figures: {
        idle_bytes_per_hour: 'an idle agent, both directions, mean of a day',
        idle_bytes_per_hour_metered: 'the same with --metered',
      },
    },
    floor: {
      seconds: 10,
      figures: {
        floor_10000_p99_ms: 'a bare server answers 10,000 waiting polls with one page: → page checked, 99th percentile',
        floor_10000_rss_mb: 'memory of that server with 10,000 waiting polls, MB',
      },
    },
    wake: {
      seconds: 40,
      figures: {
        wake_p50_ms: 'a service of one of 2,000 clusters changes by the API → page checked, median of 100',
        wake_p99_ms: 'the same, 99th percentile',
        wake_all_2000_p99_ms: 'a commit changes a row of each of 2,000 clusters → page checked, 99th percentile',
      },
    },
    fanout: {
      seconds: 150,
      figures: {
        fanout_10000_p50_ms: 'webhook of a commit that changes a row of each of 10,000 clusters → page checked, median',
        fanout_10000_p99_ms: 'the same, 99th percentile; median of 3 commits',
        fanout_10000_last_ms: 'the same, last agent',
        fanout_server_cpu_ms: 'processor time of the server for that commit',
        fanout_agents_cpu_ms: 'processor time of the simulated agents for that commit',
        server_rss_mb: 'memory of the server after those commits, MB',
        server_rss_peak_mb: 'its peak since the start, MB',
        server_cpu_ms_per_idle_agent_hour: 'processor time of the server for an idle agent an hour',
        event_loop_lag_p99_ms: 'delay of timers on the event loop of the server during that commit, 99th percentile',
        event_loop_lag_max_ms: 'the same, maximum',
      },
    },
  },
} as const satisfies Record<string, Record<string, PartEntry>>

export type BenchmarkName = keyof typeof TABLE

type Parts = Readonly<Record<string, PartEntry>>
export const partsOf = (name: BenchmarkName): Parts => TABLE[name]
