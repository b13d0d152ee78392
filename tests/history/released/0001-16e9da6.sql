BEGIN TRANSACTION;
CREATE TABLE builds (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    engine TEXT NOT NULL,
    release TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    source_digest TEXT NOT NULL,
    compiler TEXT NOT NULL,
    manifest TEXT NOT NULL
) STRICT;
INSERT INTO "builds" VALUES(1,'key of postgres@17.11','postgres','17.11','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"}}');
INSERT INTO "builds" VALUES(2,'key of postgres@git:c0ffee123451','postgres','git:c0ffee123451','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"}}');
INSERT INTO "builds" VALUES(3,'key of postgres@git:c0ffee123452','postgres','git:c0ffee123452','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"}}');
INSERT INTO "builds" VALUES(4,'key of postgres@git:c0ffee123453','postgres','git:c0ffee123453','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"}}');
INSERT INTO "builds" VALUES(5,'key of postgres@git:c0ffee123454','postgres','git:c0ffee123454','cache','sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','gcc 13.2.0','{"compiler":{"version":"gcc 13.2.0"},"source":{"digest":"sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","kind":"cache","location":"postgresql.tar.bz2"}}');
CREATE TABLE configurations (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL
) STRICT;
INSERT INTO "configurations" VALUES(1,'41eabacbdf89eab34d4f61117cadc3d420da88b2e2a84192e8707e516aad19e9','{"server":"postgres@17.11","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(2,'0bc426431eb783dd01b686f1baddd2479364f6c345b9e77548e9adbb2516d756','{"server":"postgres@git:c0ffee123451","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(3,'43557db1864deb4589d9dc02567b748e5e154833e65478b08458df6c7c4ddad7','{"server":"postgres@git:c0ffee123452","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(4,'3e4b2aca9bf4b2b4db612a07aa3789ba665de44960e31c6e05cc5e931a9ff19a','{"server":"postgres@git:c0ffee123453","shared_buffers":"1GB"}');
INSERT INTO "configurations" VALUES(5,'a541d908b6222eed69f3bbc8fe9d202711f77da7a4dce3487c20677c8a7a8a6d','{"server":"postgres@git:c0ffee123454","shared_buffers":"1GB"}');
CREATE TABLE machines (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    hostname TEXT NOT NULL,
    cpu_model TEXT NOT NULL,
    cores INTEGER NOT NULL,
    memory_bytes INTEGER NOT NULL,
    kernel TEXT NOT NULL,
    operating_system TEXT NOT NULL,
    details TEXT NOT NULL
) STRICT;
INSERT INTO "machines" VALUES(1,'f00d','db1','EPYC 9454P',48,137438953472,'6.8.0-55','Ubuntu 24.04','{"governor":"performance"}');
CREATE TABLE measurements (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    metric TEXT NOT NULL REFERENCES metrics (name),
    value REAL NOT NULL,
    PRIMARY KEY (run_id, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO "measurements" VALUES(1,'qps',1001.125);
INSERT INTO "measurements" VALUES(1,'server_cpu_us_per_op',9.98876264202771864137e+01);
INSERT INTO "measurements" VALUES(2,'qps',931.125);
INSERT INTO "measurements" VALUES(2,'server_cpu_us_per_op',1.07396966035709496623e+02);
INSERT INTO "measurements" VALUES(3,'qps',1001.25);
INSERT INTO "measurements" VALUES(3,'server_cpu_us_per_op',9.9875156054931338188e+01);
INSERT INTO "measurements" VALUES(4,'qps',931.25);
INSERT INTO "measurements" VALUES(4,'server_cpu_us_per_op',1.07382550335570471134e+02);
INSERT INTO "measurements" VALUES(5,'qps',1001.125);
INSERT INTO "measurements" VALUES(5,'server_cpu_us_per_op',9.98876264202771864137e+01);
INSERT INTO "measurements" VALUES(6,'qps',931.125);
INSERT INTO "measurements" VALUES(6,'server_cpu_us_per_op',1.07396966035709496623e+02);
INSERT INTO "measurements" VALUES(7,'qps',1001.25);
INSERT INTO "measurements" VALUES(7,'server_cpu_us_per_op',9.9875156054931338188e+01);
INSERT INTO "measurements" VALUES(8,'qps',931.25);
INSERT INTO "measurements" VALUES(8,'server_cpu_us_per_op',1.07382550335570471134e+02);
INSERT INTO "measurements" VALUES(9,'qps',1002.125);
INSERT INTO "measurements" VALUES(9,'server_cpu_us_per_op',9.97879506049644504628e+01);
INSERT INTO "measurements" VALUES(10,'qps',932.125);
INSERT INTO "measurements" VALUES(10,'server_cpu_us_per_op',1.0728174869250368317e+02);
INSERT INTO "measurements" VALUES(11,'qps',1002.25);
INSERT INTO "measurements" VALUES(11,'server_cpu_us_per_op',9.97755051134946313595e+01);
INSERT INTO "measurements" VALUES(12,'qps',932.25);
INSERT INTO "measurements" VALUES(12,'server_cpu_us_per_op',1.07267363904532047062e+02);
INSERT INTO "measurements" VALUES(13,'qps',1002.125);
INSERT INTO "measurements" VALUES(13,'server_cpu_us_per_op',9.97879506049644504628e+01);
INSERT INTO "measurements" VALUES(15,'qps',1002.25);
INSERT INTO "measurements" VALUES(15,'server_cpu_us_per_op',9.97755051134946313595e+01);
INSERT INTO "measurements" VALUES(17,'qps',1003.125);
INSERT INTO "measurements" VALUES(17,'server_cpu_us_per_op',9.9688473520249218044e+01);
INSERT INTO "measurements" VALUES(18,'qps',933.125);
INSERT INTO "measurements" VALUES(18,'server_cpu_us_per_op',1.07166778298727393802e+02);
INSERT INTO "measurements" VALUES(19,'qps',1003.25);
INSERT INTO "measurements" VALUES(19,'server_cpu_us_per_op',99.676052828308);
INSERT INTO "measurements" VALUES(20,'qps',933.25);
INSERT INTO "measurements" VALUES(20,'server_cpu_us_per_op',1.07152424323600314437e+02);
INSERT INTO "measurements" VALUES(21,'qps',1003.125);
INSERT INTO "measurements" VALUES(21,'server_cpu_us_per_op',9.9688473520249218044e+01);
INSERT INTO "measurements" VALUES(22,'qps',933.125);
INSERT INTO "measurements" VALUES(22,'server_cpu_us_per_op',1.07166778298727393802e+02);
INSERT INTO "measurements" VALUES(23,'qps',1003.25);
INSERT INTO "measurements" VALUES(23,'server_cpu_us_per_op',99.676052828308);
INSERT INTO "measurements" VALUES(24,'qps',933.25);
INSERT INTO "measurements" VALUES(24,'server_cpu_us_per_op',1.07152424323600314437e+02);
INSERT INTO "measurements" VALUES(25,'qps',1004.125);
INSERT INTO "measurements" VALUES(25,'server_cpu_us_per_op',9.95891945723888909452e+01);
INSERT INTO "measurements" VALUES(26,'qps',934.125);
INSERT INTO "measurements" VALUES(26,'server_cpu_us_per_op',1.0705205406128730772e+02);
INSERT INTO "measurements" VALUES(27,'qps',1004.25);
INSERT INTO "measurements" VALUES(27,'server_cpu_us_per_op',9.95767986059248215707e+01);
INSERT INTO "measurements" VALUES(28,'qps',934.25);
INSERT INTO "measurements" VALUES(28,'server_cpu_us_per_op',1.0703773080010704177e+02);
INSERT INTO "measurements" VALUES(29,'qps',1004.125);
INSERT INTO "measurements" VALUES(29,'server_cpu_us_per_op',9.95891945723888909452e+01);
INSERT INTO "measurements" VALUES(30,'qps',934.125);
INSERT INTO "measurements" VALUES(30,'server_cpu_us_per_op',1.0705205406128730772e+02);
INSERT INTO "measurements" VALUES(31,'qps',1004.25);
INSERT INTO "measurements" VALUES(31,'server_cpu_us_per_op',9.95767986059248215707e+01);
INSERT INTO "measurements" VALUES(32,'qps',934.25);
INSERT INTO "measurements" VALUES(32,'server_cpu_us_per_op',1.0703773080010704177e+02);
INSERT INTO "measurements" VALUES(33,'qps',1005.125);
INSERT INTO "measurements" VALUES(33,'server_cpu_us_per_op',9.94901131700037240097e+01);
INSERT INTO "measurements" VALUES(34,'qps',935.125);
INSERT INTO "measurements" VALUES(34,'server_cpu_us_per_op',1.06937575190482561996e+02);
INSERT INTO "measurements" VALUES(35,'qps',1005.125);
INSERT INTO "measurements" VALUES(35,'server_cpu_us_per_op',9.94901131700037240097e+01);
INSERT INTO "measurements" VALUES(36,'qps',935.125);
INSERT INTO "measurements" VALUES(36,'server_cpu_us_per_op',1.06937575190482561996e+02);
INSERT INTO "measurements" VALUES(37,'qps',1006.125);
INSERT INTO "measurements" VALUES(37,'server_cpu_us_per_op',99.3912287240651);
INSERT INTO "measurements" VALUES(38,'qps',936.125);
INSERT INTO "measurements" VALUES(38,'server_cpu_us_per_op',1.0682334089998664694e+02);
INSERT INTO "measurements" VALUES(39,'qps',1006.125);
INSERT INTO "measurements" VALUES(39,'server_cpu_us_per_op',99.3912287240651);
INSERT INTO "measurements" VALUES(40,'qps',936.125);
INSERT INTO "measurements" VALUES(40,'server_cpu_us_per_op',1.0682334089998664694e+02);
INSERT INTO "measurements" VALUES(41,'qps',1007.125);
INSERT INTO "measurements" VALUES(41,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(42,'qps',937.125);
INSERT INTO "measurements" VALUES(42,'server_cpu_us_per_op',1.06709350406829400976e+02);
INSERT INTO "measurements" VALUES(43,'qps',1007.125);
INSERT INTO "measurements" VALUES(43,'server_cpu_us_per_op',9.92925406478838254963e+01);
INSERT INTO "measurements" VALUES(44,'qps',937.125);
INSERT INTO "measurements" VALUES(44,'server_cpu_us_per_op',1.06709350406829400976e+02);
CREATE TABLE metrics (
    name TEXT NOT NULL PRIMARY KEY,
    unit TEXT NOT NULL,
    better TEXT NOT NULL CHECK (better IN ('higher', 'lower', 'neither')),
    description TEXT NOT NULL
) STRICT;
INSERT INTO "metrics" VALUES('qps','queries/s','higher','queries finished per second over the whole step');
INSERT INTO "metrics" VALUES('tps','transactions/s','higher','transactions finished per second over the whole step');
INSERT INTO "metrics" VALUES('transactions','transactions','neither','transactions finished: the work of the step');
INSERT INTO "metrics" VALUES('seconds','s','neither','length of the measured window');
INSERT INTO "metrics" VALUES('errors','errors','lower','failed or retried transactions');
INSERT INTO "metrics" VALUES('latency_mean_ms','ms','lower','mean latency of a transaction');
INSERT INTO "metrics" VALUES('latency_p50_ms','ms','lower','median latency of a transaction');
INSERT INTO "metrics" VALUES('latency_p95_ms','ms','lower','95th percentile of transaction latency');
INSERT INTO "metrics" VALUES('latency_p99_ms','ms','lower','99th percentile of transaction latency');
INSERT INTO "metrics" VALUES('latency_p999_ms','ms','lower','99.9th percentile of transaction latency');
INSERT INTO "metrics" VALUES('latency_max_ms','ms','lower','slowest transaction');
INSERT INTO "metrics" VALUES('qps_cv','ratio','lower','coefficient of variation of the per-second throughput');
INSERT INTO "metrics" VALUES('qps_p1_over_median','ratio','higher','1st percentile of per-second throughput over its median');
INSERT INTO "metrics" VALUES('server_cpu_us_per_op','µs/query','lower','CPU time of all server processes per query');
INSERT INTO "metrics" VALUES('client_cpu_us_per_op','µs/query','lower','CPU time of the load generator per query');
INSERT INTO "metrics" VALUES('machine_cpu_us_per_op','µs/query','lower','busy CPU time of the whole machine per query');
INSERT INTO "metrics" VALUES('server_cs_per_op','switches/query','lower','context switches of the server per query');
INSERT INTO "metrics" VALUES('client_cs_per_op','switches/query','lower','context switches of the load generator per query');
INSERT INTO "metrics" VALUES('machine_cs_per_op','switches/query','lower','context switches of the whole machine per query');
INSERT INTO "metrics" VALUES('server_read_kb_per_op','KiB/query','lower','read from storage by server processes per query');
INSERT INTO "metrics" VALUES('server_written_kb_per_op','KiB/query','lower','sent to storage by server processes per query');
INSERT INTO "metrics" VALUES('client_read_kb_per_op','KiB/query','lower','read from storage by the load generator per query');
INSERT INTO "metrics" VALUES('client_written_kb_per_op','KiB/query','lower','sent to storage by the load generator per query');
INSERT INTO "metrics" VALUES('machine_reads_per_op','reads/query','lower','read requests of all disks per query');
INSERT INTO "metrics" VALUES('machine_read_kb_per_op','KiB/query','lower','read by all disks per query');
INSERT INTO "metrics" VALUES('machine_written_kb_per_op','KiB/query','lower','written by all disks per query');
INSERT INTO "metrics" VALUES('wal_bytes_per_op','bytes/query','lower','write-ahead or redo log written during the step per query');
INSERT INTO "metrics" VALUES('pages_flushed_per_op','pages/query','lower','InnoDB pages written from the buffer pool per query');
INSERT INTO "metrics" VALUES('reset_seconds','s','lower','the whole reset after the step');
INSERT INTO "metrics" VALUES('reset_vacuum_seconds','s','lower','VACUUM (ANALYZE) of all tables after the step');
INSERT INTO "metrics" VALUES('reset_checkpoint_seconds','s','lower','CHECKPOINT after the vacuum');
INSERT INTO "metrics" VALUES('reset_wal_bytes','bytes','lower','write-ahead or redo log written by the reset');
INSERT INTO "metrics" VALUES('reset_dead_tuples_before','tuples','neither','dead tuples when the reset began');
INSERT INTO "metrics" VALUES('reset_dead_tuples_after','tuples','lower','dead tuples that the reset could not remove');
INSERT INTO "metrics" VALUES('reset_purge_seconds','s','lower','waiting until InnoDB has purged old row versions');
INSERT INTO "metrics" VALUES('reset_flush_seconds','s','lower','waiting until InnoDB has written its dirty pages');
INSERT INTO "metrics" VALUES('reset_history_before','transactions','neither','length of the history list when the reset began');
INSERT INTO "metrics" VALUES('reset_history_after','transactions','lower','length of the history list that purge left');
INSERT INTO "metrics" VALUES('reset_dirty_pages_before','pages','neither','dirty pages when the reset began');
INSERT INTO "metrics" VALUES('reset_dirty_pages_after','pages','lower','dirty pages that the reset left');
INSERT INTO "metrics" VALUES('table_bytes','bytes','lower','tables without their indexes after the reset');
INSERT INTO "metrics" VALUES('index_bytes','bytes','lower','indexes after the reset');
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    build_id INTEGER NOT NULL REFERENCES builds (id),
    version TEXT NOT NULL,
    configuration_id INTEGER REFERENCES configurations (id),
    step TEXT NOT NULL,
    step_position INTEGER NOT NULL,
    repetition INTEGER NOT NULL CHECK (repetition >= 1),
    position INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('finished', 'failed', 'interrupted')),
    failure TEXT,
    warnings TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    UNIQUE (session_id, version, step, repetition)
) STRICT;
INSERT INTO "runs" VALUES(1,1,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(2,1,2,'postgres@git:c0ffee123451',2,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(3,1,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(4,1,2,'postgres@git:c0ffee123451',2,'update-index',1,2,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(5,1,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'[]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(6,1,2,'postgres@git:c0ffee123451',2,'insert',2,1,6,'finished',NULL,'[]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:30.000Z');
INSERT INTO "runs" VALUES(7,1,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'[]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(8,1,2,'postgres@git:c0ffee123451',2,'insert',2,2,8,'finished',NULL,'[]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:30.000Z');
INSERT INTO "runs" VALUES(9,2,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(10,2,3,'postgres@git:c0ffee123452',3,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(11,2,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(12,2,3,'postgres@git:c0ffee123452',3,'update-index',1,2,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(13,2,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'[]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(14,2,3,'postgres@git:c0ffee123452',3,'insert',2,1,6,'failed','the server did not start','[]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:00.000Z');
INSERT INTO "runs" VALUES(15,2,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'[]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(16,2,3,'postgres@git:c0ffee123452',3,'insert',2,2,8,'failed','the server did not start','[]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:00.000Z');
INSERT INTO "runs" VALUES(17,3,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(18,3,4,'postgres@git:c0ffee123453',4,'update-index',1,1,2,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(19,3,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(20,3,4,'postgres@git:c0ffee123453',4,'update-index',1,2,4,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(21,3,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(22,3,4,'postgres@git:c0ffee123453',4,'insert',2,1,6,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:30.000Z');
INSERT INTO "runs" VALUES(23,3,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(24,3,4,'postgres@git:c0ffee123453',4,'insert',2,2,8,'finished',NULL,'["the reset was not finished"]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:30.000Z');
INSERT INTO "runs" VALUES(25,4,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(26,4,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(27,4,1,'postgres@17.11',1,'update-index',1,2,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(28,4,5,'postgres@git:c0ffee123454',5,'update-index',1,2,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(29,4,1,'postgres@17.11',1,'insert',2,1,5,'finished',NULL,'[]','2026-03-01T02:05:00.000Z','2026-03-01T02:05:30.000Z');
INSERT INTO "runs" VALUES(30,4,5,'postgres@git:c0ffee123454',5,'insert',2,1,6,'finished',NULL,'[]','2026-03-01T02:06:00.000Z','2026-03-01T02:06:30.000Z');
INSERT INTO "runs" VALUES(31,4,1,'postgres@17.11',1,'insert',2,2,7,'finished',NULL,'[]','2026-03-01T02:07:00.000Z','2026-03-01T02:07:30.000Z');
INSERT INTO "runs" VALUES(32,4,5,'postgres@git:c0ffee123454',5,'insert',2,2,8,'finished',NULL,'[]','2026-03-01T02:08:00.000Z','2026-03-01T02:08:30.000Z');
INSERT INTO "runs" VALUES(33,5,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(34,5,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(35,5,1,'postgres@17.11',1,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(36,5,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(37,6,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(38,6,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(39,6,1,'postgres@17.11',1,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(40,6,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
INSERT INTO "runs" VALUES(41,7,1,'postgres@17.11',1,'update-index',1,1,1,'finished',NULL,'[]','2026-03-01T02:01:00.000Z','2026-03-01T02:01:30.000Z');
INSERT INTO "runs" VALUES(42,7,5,'postgres@git:c0ffee123454',5,'update-index',1,1,2,'finished',NULL,'[]','2026-03-01T02:02:00.000Z','2026-03-01T02:02:30.000Z');
INSERT INTO "runs" VALUES(43,7,1,'postgres@17.11',1,'insert',2,1,3,'finished',NULL,'[]','2026-03-01T02:03:00.000Z','2026-03-01T02:03:30.000Z');
INSERT INTO "runs" VALUES(44,7,5,'postgres@git:c0ffee123454',5,'insert',2,1,4,'finished',NULL,'[]','2026-03-01T02:04:00.000Z','2026-03-01T02:04:30.000Z');
CREATE TABLE samples (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    second INTEGER NOT NULL CHECK (second >= 1),
    qps REAL NOT NULL,
    PRIMARY KEY (run_id, second)
) STRICT, WITHOUT ROWID;
INSERT INTO "samples" VALUES(1,1,1000.125);
INSERT INTO "samples" VALUES(1,2,1002.125);
INSERT INTO "samples" VALUES(2,1,930.125);
INSERT INTO "samples" VALUES(2,2,932.125);
INSERT INTO "samples" VALUES(3,1,1000.25);
INSERT INTO "samples" VALUES(3,2,1002.25);
INSERT INTO "samples" VALUES(4,1,930.25);
INSERT INTO "samples" VALUES(4,2,932.25);
INSERT INTO "samples" VALUES(5,1,1000.125);
INSERT INTO "samples" VALUES(5,2,1002.125);
INSERT INTO "samples" VALUES(6,1,930.125);
INSERT INTO "samples" VALUES(6,2,932.125);
INSERT INTO "samples" VALUES(7,1,1000.25);
INSERT INTO "samples" VALUES(7,2,1002.25);
INSERT INTO "samples" VALUES(8,1,930.25);
INSERT INTO "samples" VALUES(8,2,932.25);
CREATE TABLE schema_migrations (
    number INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT;
INSERT INTO "schema_migrations" VALUES(1,'history','2026-11-25T02:53:56.454Z');
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    machine_id INTEGER NOT NULL REFERENCES machines (id),
    suite TEXT NOT NULL,
    profile TEXT NOT NULL,
    suite_digest TEXT NOT NULL,
    seed INTEGER NOT NULL,
    durability TEXT NOT NULL,
    repetitions INTEGER NOT NULL CHECK (repetitions >= 1),
    started_at TEXT NOT NULL,
    ended_at TEXT,
    status TEXT NOT NULL CHECK (status IN ('running', 'finished', 'interrupted', 'failed')),
    command TEXT NOT NULL,
    tools TEXT NOT NULL,
    options TEXT NOT NULL,
    process_id INTEGER NOT NULL,
    process_start_ticks INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    CHECK ((status = 'running') = (ended_at IS NULL))
) STRICT;
INSERT INTO "sessions" VALUES(1,'night-1',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-02T02:00:00.000Z','2026-03-02T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123451":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123451"]}',25472,275158,'bc27ace5-f1b6-45a2-be90-311cbcd64302');
INSERT INTO "sessions" VALUES(2,'night-2',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-03T02:00:00.000Z','2026-03-03T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123452":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123452"]}',25472,275158,'bc27ace5-f1b6-45a2-be90-311cbcd64302');
INSERT INTO "sessions" VALUES(3,'night-3',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-04T02:00:00.000Z','2026-03-04T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123453":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123453"]}',25472,275158,'bc27ace5-f1b6-45a2-be90-311cbcd64302');
INSERT INTO "sessions" VALUES(4,'night-4',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',2,'2026-03-05T02:00:00.000Z','2026-03-05T02:00:00.000Z','finished','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',25472,275158,'bc27ace5-f1b6-45a2-be90-311cbcd64302');
INSERT INTO "sessions" VALUES(5,'night-5',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-06T02:00:00.000Z','2026-03-06T02:00:00.000Z','interrupted','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',25472,275158,'bc27ace5-f1b6-45a2-be90-311cbcd64302');
INSERT INTO "sessions" VALUES(6,'night-6',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-07T02:00:00.000Z','2026-03-07T02:00:00.000Z','failed','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',25472,275158,'bc27ace5-f1b6-45a2-be90-311cbcd64302');
INSERT INTO "sessions" VALUES(7,'under-way',1,'write-heavy','short','abababababababababababababababababababababababababababababababab',42,'relaxed',1,'2026-03-08T02:00:00.000Z',NULL,'running','./tidemark run','{"sysbench":"1.0.20"}','{"branches":{"postgres@git:c0ffee123454":"postgres@REL_18_STABLE"},"mode":"rounds","seconds":20,"threads":8,"versions":["postgres@17.11","postgres@git:c0ffee123454"]}',25472,275158,'bc27ace5-f1b6-45a2-be90-311cbcd64302');
CREATE INDEX sessions_by_start ON sessions (started_at);
CREATE INDEX runs_by_version ON runs (version, session_id);
CREATE VIEW relative_qps AS
SELECT
    base.session_id AS session_id,
    base.step AS step,
    base.repetition AS repetition,
    base.version AS base_version,
    contender.version AS contender_version,
    base_qps.value AS base_qps,
    contender_qps.value AS contender_qps,
    contender_qps.value / NULLIF(base_qps.value, 0) AS relative_qps
FROM runs AS base
JOIN runs AS contender
    ON contender.session_id = base.session_id
    AND contender.step = base.step
    AND contender.repetition = base.repetition
    AND contender.version <> base.version
JOIN measurements AS base_qps ON base_qps.run_id = base.id AND base_qps.metric = 'qps'
JOIN measurements AS contender_qps ON contender_qps.run_id = contender.id AND contender_qps.metric = 'qps'
WHERE base.status = 'finished' AND contender.status = 'finished';
COMMIT;
