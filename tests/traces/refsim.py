#!/usr/bin/env python3
"""refsim.py - small event-driven reference scheduler simulator (our own code, stdlib only).

Second opinion for `mgpu-sim`: same inputs, plain O(queue) algorithms, no cleverness.
  refsim.py TRACE.csv --nodes N --gpn 8 --policy P [--tick 1] [--place consolidate|pool]
policies: fifo sjf qssf (strict: head blocks), fifo-skip (any that fits), easy, easy-sjf, easy-qssf,
          cons (conservative), srtf, tiresias.  Runtime estimate used for reservations:
          --est exact|pred|wall|predx (duration / pred_duration / walltime_req / pred_duration doubled
          whenever a running job has outlived it)
--place consolidate = best-fit one node if <= gpn GPUs, else whole free nodes (+ one partial best node);
--place pool = a flat pool of nodes*gpn units.
Preemption: a preempted job loses nothing but is charged 40 s (<=8 GPUs) or 60 s extra work.
All jobs of one scheduling instant are handled: ends first, then arrivals, then one pass.
"""
import sys,csv,heapq,argparse,bisect,time as _t
def load(f):
    r=[]
    for i,x in enumerate(csv.DictReader(open(f))):
        g=int(x.get('gpus') or x.get('procs')); d=int(x['duration'])
        r.append(dict(i=i,id=x['job_id'],user=x.get('user','-'),sub=int(x['submit']),g=g,d=d,
          pred=int(x.get('pred_duration') or 0) or d,wall=int(x.get('walltime_req') or 0) or d))
        if r[-1]['wall']<=0: r[-1]['wall']=d
    r.sort(key=lambda j:(j['sub'],j['i'])); return r
class Nodes:
    def __init__(s,n,gpn): s.f=[gpn]*n; s.gpn=gpn; s.free=n*gpn; s.total=n*gpn
    def place(s,g):
        if g>s.free: return None
        f=s.f;G=s.gpn
        if g<=G:
            b=-1
            for i,v in enumerate(f):
                if v>=g and (b<0 or v<f[b]):
                    b=i
                    if v==g: break
            if b<0: return None
            a=[(b,g)]
        else:
            w,rem=divmod(g,G); e=[i for i,v in enumerate(f) if v==G]
            if len(e)<w: return None
            a=[(i,G) for i in e[:w]]
            if rem:
                used=set(e[:w]); b=-1
                for i,v in enumerate(f):
                    if i not in used and v>=rem and (b<0 or v<f[b]): b=i
                if b<0: return None
                a.append((b,rem))
        for i,k in a: f[i]-=k
        s.free-=g; return a
    def release(s,a):
        for i,k in a: s.f[i]+=k; s.free+=k
    def copy(s):
        c=Nodes(0,s.gpn); c.f=s.f[:]; c.free=s.free; c.total=s.total; return c
class Pool:
    def __init__(s,n,gpn): s.free=s.total=n*gpn; s.gpn=gpn
    def place(s,g):
        if g>s.free: return None
        s.free-=g; return g
    def release(s,a): s.free+=a
    def copy(s):
        c=Pool(0,0); c.free=s.free; c.total=s.total; return c
def run(jobs,nodes,gpn,policy,place='consolidate',est='exact',interval=60,thr=18000,bf_depth=10**9):
    C=(Nodes if place=='consolidate' else Pool)(nodes,gpn)
    E=dict(exact='d',pred='pred',wall='wall',predx='pred')[est]
    def eend(j,t):
        e=j['last']+j[E]
        if est=='predx':
            x=max(j[E],60)
            while j['last']+x<=t: x*=2
            e=j['last']+x
        return max(e,t+1)
    order=dict(fifo='sub',sjf='d',qssf='q',easy='sub',cons='sub',srtf='rem',tiresias='t').get
    base=policy.split('-')[0]; sub=policy.split('-')[1] if '-' in policy else None
    key=(lambda j:(j['d'],j['i'])) if 'sjf' in policy else (lambda j:(j['pred']*j['g'],j['i'])) if 'qssf' in policy else (lambda j:(j['sub'],j['i']))
    for j in jobs: j.update(rem=j['d'],start=None,end=None,wait=0,since=j['sub'],np=0,svc=0,a=None)
    queue=[];running={};ends=[];ver={}
    n=len(jobs);p=0;t=0;done=0
    def start(j,a,t):
        j['a']=a; j['wait']+=t-j['since']
        if j['start'] is None: j['start']=t
        j['last']=t; running[j['i']]=j; ver[j['i']]=ver.get(j['i'],0)+1
        heapq.heappush(ends,(t+j['rem'],j['i'],ver[j['i']]))
    global AREA,LAST
    AREA=[0]; LAST=jobs[-1]['sub']
    preem=base in('srtf','tiresias')
    nexttick=None
    while done<n:
        cand=[]
        if p<n: cand.append(jobs[p]['sub'])
        while ends and ver.get(ends[0][1])!=ends[0][2]: heapq.heappop(ends)
        if ends: cand.append(ends[0][0])
        if base=='tiresias' and (queue or running):
            # only tick times where something may change: next interval multiple if queue non-empty
            if queue: cand.append((t//interval+1)*interval)
        tn=min(cand)
        if t<LAST: AREA[0]+=(C.total-C.free)*(min(tn,LAST)-t)
        t=tn
        changed=False
        while ends and ends[0][0]<=t:
            e,i,v=heapq.heappop(ends)
            if ver.get(i)!=v: continue
            j=running.pop(i); C.release(j['a']); j['end']=e; done+=1; changed=True; ver[i]=v+1
        while p<n and jobs[p]['sub']<=t:
            j=jobs[p]; p+=1; changed=True
            if preem or base=='fifo' and not sub: queue.append(j)
            else: bisect.insort(queue,j,key=key)
        if base=='tiresias' and t%interval: continue
        if preem:
            for j in running.values():
                el=t-j['last']; j['rem']-=el; j['svc']+=el*j['g']; j['last']=t
            cur=queue+list(running.values())
            if base=='srtf': cur.sort(key=lambda j:j['rem'])
            else: cur.sort(key=lambda j:(j['svc']>thr,j['sub'],j['i']))
            quota=C.total;pre=[];st=[]
            for j in cur:
                if j['g']<=quota:
                    quota-=j['g']
                    if j['i'] not in running: st.append(j)
                elif j['i'] in running: pre.append(j)
            for j in pre:
                running.pop(j['i']); ver[j['i']]+=1; C.release(j['a']); j['np']+=1; j['rem']+=40 if j['g']<=8 else 60; j['since']=t; queue.append(j)
            ok=set()
            for j in st:
                a=C.place(j['g'])
                if a is not None: start(j,a,t); ok.add(j['i'])
            if ok: queue=[j for j in queue if j['i'] not in ok]
            # re-arm ends after rem changed
            continue
        i=0
        if base in('fifo','sjf','qssf') and sub!='skip':
            while queue:
                a=C.place(queue[0]['g'])
                if a is None: break
                start(queue.pop(0),a,t)
            continue
        if sub=='skip':
            keep=[];fails=set()
            for j in queue:
                a=None if j['g'] in fails or C.free==0 else C.place(j['g'])
                if a is None: fails.add(j['g']); keep.append(j)
                else: start(j,a,t)
            queue=keep; continue
        # easy / cons
        while queue:
            a=C.place(queue[0]['g'])
            if a is None: break
            start(queue.pop(0),a,t)
        if not queue or C.free==0: continue
        rel=sorted((eend(j,t),j['i']) for j in running.values())
        if base=='easy':
            head=queue[0]; D=C.copy(); shadow=None
            for e,i in rel:
                D.release(running[i]['a'])
                if D.free<head['g']: continue
                if shadow is not None and e>shadow: break
                T=D.copy()
                if T.place(head['g']) is not None: shadow=e; 
                if shadow is not None: break
            if shadow is None: shadow=10**18
            # D = state at shadow; head placed on it
            hp=D.place(head['g'])
            keep=[head];fails=set()
            for j in queue[1:1+bf_depth]:
                if C.free==0 or j['g'] in fails and False: keep.append(j); continue
                if t+j[E]<=shadow:
                    a=C.place(j['g'])
                    if a is None: keep.append(j)
                    else: start(j,a,t)
                else: # must not delay head: has to fit beside the head at shadow time too
                    a=C.place(j['g'])
                    if a is None: keep.append(j); continue
                    if isinstance(D,Pool):
                        okk=D.free>=j['g']
                        if okk: D.free-=j['g']
                    else:
                        okk=all(D.f[x]>=k for x,k in a)
                        if okk:
                            for x,k in a: D.f[x]-=k; D.free-=k
                    if okk: start(j,a,t)
                    else: C.release(a); keep.append(j)
            queue=keep+queue[1+bf_depth:]
        else: # conservative on the aggregate profile (pool only)
            prof=[(t,C.free)]
            for e,i in rel: prof.append((e,prof[-1][1]+running[i]['g']))
            ts=[x for x,_ in prof]; fr=[x for _,x in prof]
            keep=[]
            for j in queue:
                d=max(j[E],1);g=j['g'];k=0
                while True:
                    while fr[k]<g: k+=1
                    s=ts[k];e=s+d;m=k
                    while m<len(ts) and ts[m]<e and fr[m]>=g: m+=1
                    if m<len(ts) and ts[m]<e: k=m; continue
                    break
                for z in (s,e):
                    b=bisect.bisect_left(ts,z)
                    if b==len(ts) or ts[b]!=z: ts.insert(b,z); fr.insert(b,fr[b-1])
                for z in range(bisect.bisect_left(ts,s),bisect.bisect_left(ts,e)): fr[z]-=g
                if s==t and C.free>=g: start(j,C.place(g),t)
                else: keep.append(j)
            queue=keep
    return jobs,C.total
def stats(jobs,total):
    def q(v,f): v=sorted(v); return v[min(len(v)-1,int(f*len(v)))] if v else 0
    jct=[j['end']-j['sub'] for j in jobs]; w=[j['wait'] for j in jobs]
    sd=[max(1,(j['end']-j['sub'])/max(10,j['d'])) for j in jobs]
    mk=max(j['end'] for j in jobs)-min(j['sub'] for j in jobs); n=len(jobs)
    last=max(j['sub'] for j in jobs)
    used=AREA[0]
    us={}
    for j,s in zip(jobs,sd): us.setdefault(j['user'],[]).append(s)
    um=[sum(v)/len(v) for v in us.values()]; jain=sum(um)**2/(len(um)*sum(x*x for x in um))
    return dict(n=n,avgJCT=round(sum(jct)/n,1),medJCT=q(jct,.5),p99JCT=q(jct,.99),avgQ=round(sum(w)/n,1),medQ=q(w,.5),p99Q=q(w,.99),maxQ=max(w),BSLD=round(sum(sd)/n,2),maxBSLD=round(max(sd),1),makespan=mk,util_until_last_submit=round(used/(total*last),4),jain_user_slowdown=round(jain,3),worst_user_slowdown=round(max(um),1),preempt=sum(j['np'] for j in jobs))
if __name__=='__main__':
    a=argparse.ArgumentParser(); a.add_argument('trace'); a.add_argument('--nodes',type=int,required=True); a.add_argument('--gpn',type=int,default=8)
    a.add_argument('--policy',default='fifo'); a.add_argument('--place',default='consolidate'); a.add_argument('--est',default='exact'); a.add_argument('--bf-depth',type=int,default=10**9); a.add_argument('--max-jobs',type=int,default=0)
    o=a.parse_args(); J=load(o.trace)
    if o.max_jobs: J=J[:o.max_jobs]
    t0=_t.time(); r=stats(*run(J,o.nodes,o.gpn,o.policy,o.place,o.est,bf_depth=o.bf_depth))
    print(o.trace.split('/')[-1],o.policy,o.est,o.place,' '.join(f'{k}={v}' for k,v in r.items()),f'wall={_t.time()-t0:.1f}s',flush=True)
